"""The service's clock, which the control door can move forward, and times as the wire has them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)

_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def system_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


class Clock:
    """`source` plus what it was advanced by. The advance lives as long as the process.

    `moved` is called after each advance, by whoever advanced it.
    """

    def __init__(self, source: Callable[[], datetime] = system_clock) -> None:
        self._source = source
        self._offset = timedelta()
        self.on_advance: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The service's time, in UTC."""
        return (self._source() + self._offset).astimezone(UTC)

    def timestamp(self) -> float:
        """The service's time, in seconds since 1970."""
        return self.now().timestamp()

    def advance(self, seconds: float) -> None:
        """Let that much time pass at once. OverflowError where no call could be dated any more."""
        with self._lock:
            offset = self._offset + timedelta(seconds=seconds)
            if self._source() + offset > _LATEST:
                raise OverflowError(f"the clock goes no further than {_LATEST.year}")
            self._offset = offset
        self.on_advance()

    def reset(self) -> None:
        """Back to the source's time."""
        with self._lock:
            self._offset = timedelta()


def parse_rfc3339(text: str) -> datetime | None:
    """The moment that an RFC 3339 time names, in UTC; None where it names none."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def from_timestamp(seconds: float) -> datetime:
    """The moment that is so many seconds after 1970 began, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def rfc3339_at(seconds: float | None) -> str | None:
    """What `format_rfc3339` gives for that moment; None for None."""
    return None if seconds is None else format_rfc3339(from_timestamp(seconds))


def format_rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with `Z`; fractions of a second only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
