"""How long to wait between looks. Pure, but for the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

FIRST: Final = 15.0
"""Seconds between looks at first."""
SLOWEST: Final = 120.0
"""Seconds between looks after a long time."""
STATE: Final = 600.0
"""Seconds between looks at whether a request still can be answered."""
RATE: Final = 50.0 / 60.0
"""Looks a second that all requests take together: half of what the smallest plan allows (specification: Limits)."""
BURST: Final = 100.0
"""Looks that may leave at once after a while without any: half of that plan's burst."""


def pause(waited: float, requests: int) -> float:
    """Seconds until the next look at `requests` of them, after `waited` seconds: a twentieth of that, within bounds."""
    return max(min(SLOWEST, max(FIRST, waited / 20)), requests / RATE)


class Allowance:
    """What all looks of a wait may take together, as a bucket: the service's own, at half its size and rate."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left, self._at = BURST, clock()

    def leaves(self, pause: float, looks: int, left: float) -> float:
        """How many may leave at once after `left` seconds, if so many looks leave after `pause` of them."""
        now = min(BURST, self._left + (self._clock() - self._at) * RATE)
        return min(BURST, min(BURST, now + pause * RATE) - looks + (left - pause) * RATE)

    def take(self, requests: int) -> float:
        """Seconds until so many may leave. They count as gone."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - requests
        self._at = now
        return max(0.0, -self._left / RATE)
