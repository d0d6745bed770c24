"""Strangers who ask too much without a credential that is accepted: a bucket for each address, in
the memory of a process.

It protects a process and decides nothing: what callers could guess (passcodes, views) the database
counts, for all processes together. So a flood costs no statement, and a restart forgets.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

PER_SECOND: Final = 20.0
BURST: Final = 1200.0
MISS: Final = 20.0
"""What a request costs that may be a guess: one that was answered with 403 or 404, under /v1 one
whose credential was refused. Each other costs 1.
"""
MOST: Final = 10_000
"""Addresses, and credentials, that are remembered; then those are forgotten that have not asked for
longest.
"""


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
        cost = MISS if is_miss else 1.0
        # What many connections ask at once is a debt of a minute at most.
        left = max(-BURST, self._find_left(stranger) - cost)
        self._buckets[stranger] = (left, self._clock())
        self._buckets.move_to_end(stranger)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)

    def _find_left(self, stranger: str) -> float:
        left, since = self._buckets.get(stranger, (BURST, 0.0))
        return min(BURST, left + (self._clock() - since) * PER_SECOND)


class Accepted:
    """Credentials that were accepted last, by their hashes.

    Behind one address (NAT) they go on, however much others ask from there; each is still checked
    at each call.
    """

    def __init__(self) -> None:
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, credential: bytes) -> bool:
        return _hash(credential) in self._hashes

    def add(self, credential: bytes) -> None:
        """Remember one that was accepted."""
        name = _hash(credential)
        self._hashes[name] = None
        self._hashes.move_to_end(name)
        if len(self._hashes) > MOST:
            self._hashes.popitem(last=False)

    def discard(self, credential: bytes) -> None:
        """Forget one that was refused."""
        self._hashes.pop(_hash(credential), None)


def _hash(credential: bytes) -> bytes:
    return hashlib.sha256(credential).digest()
