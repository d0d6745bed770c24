"""How often something may still be done within an hour, by the times at which it was.

Calls of a tool, rows of a batch.

Pure. Times are numbers of one unit, and `hour` is an hour in it. Where they are kept is the
caller's: a file that all servers of a machine share, or the histories of a database that all
machines share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")
Time = TypeVar("Time", int, float)


@dataclass(frozen=True)
class HourlyLimit:
    """At most `most` within an hour."""

    most: int
    hour: int

    def select_counted(self, times: Mapping[Key, Time], now: Time) -> dict[Key, Time]:
        """Return those that still count.

        A time in the future was noted before the clock was set back. It counts as one of now: the
        hour begins again, so that setting the clock neither gives anything back nor blocks for
        longer than an hour.
        """
        return {key: min(at, now) for key, at in times.items() if at > now - self.hour}

    def count_left(self, times: Collection[Time]) -> int:
        """Return how many may be done now. `times` are those that count."""
        return max(0, self.most - len(times))

    def find_time(self, times: Collection[Time], waiting: int = 0) -> Time:
        """Return from when one more may be done.

        `waiting` are the others that wait, each for a place of its own.
        """
        ends = sorted(times)
        place = len(ends) - self.most + waiting
        return ends[place % len(ends)] + self.hour * (1 + place // len(ends))
