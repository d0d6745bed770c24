"""How fast an API key may call: a token bucket each (specification: Limits; Endpoints, Common)."""

from __future__ import annotations

import math
import threading

from .plans import BURST

_ROUNDING = 6
"""Digits after the point that count: who waits as long as Retry-After says must not meet another 429 by 1e-16."""


class Rates:
    """One bucket a key, full at first. It holds the burst and fills at the sustained rate."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key_id: str, per_minute: int, now: float) -> int:
        """Take one call; 0 where there was one, else the whole seconds after which there is one again."""
        burst, a_second = float(per_minute * BURST), per_minute / 60
        with self._lock:
            held, at = self._buckets.get(key_id, (burst, now))
            # A clock that was set back must not take anything away.
            held = min(burst, held + max(0.0, now - at) * a_second)
            allowed = round(held, _ROUNDING) >= 1
            self._buckets[key_id] = held - allowed, now
        return 0 if allowed else max(1, math.ceil(round((1 - held) / a_second, _ROUNDING)))

    def forget(self) -> None:
        """Fill every bucket."""
        with self._lock:
            self._buckets.clear()
