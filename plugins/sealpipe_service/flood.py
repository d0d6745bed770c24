"""Strangers who ask too much outside /v1: a bucket for each address, in the memory of a process.

It protects a process and decides nothing: what callers could guess (passcodes, views) the database
counts, for all processes together. So a flood costs no statement, and a restart forgets.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

PER_SECOND: Final = 20.0
BURST: Final = 1200.0
MISS: Final = 20.0
"""What a request costs that was answered with 403 or 404, as guesses are; each other costs 1."""
MOST: Final = 10_000
"""Addresses that are remembered; then those are forgotten that have not asked for longest."""


class Flood:
    """How much each stranger may ask, by a clock in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left, and since when; the latest last."""

    def find_wait(self, stranger: str) -> int:
        """Return how many seconds a stranger has to wait; 0 if not at all."""
        left = self._find_left(stranger)
        return 0 if left >= 1 else math.ceil((1 - left) / PER_SECOND)

    def spend(self, stranger: str, *, is_miss: bool) -> None:
        """Take what an answer costs."""
        left = self._find_left(stranger) - (MISS if is_miss else 1.0)
        self._buckets[stranger] = (left, self._clock())
        self._buckets.move_to_end(stranger)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)

    def _find_left(self, stranger: str) -> float:
        left, since = self._buckets.get(stranger, (BURST, 0.0))
        return min(BURST, left + (self._clock() - since) * PER_SECOND)
