"""The rate limiter of a client: a 429 makes all of its calls wait.

Afterwards their requests are sent one by one, first come, first served.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from sealpipe.api.operation import Failure
from sealpipe.network.rate import SECOND, RateState, refuse_delay

MAX_SLEEP = 1.0
"""Seconds to sleep at most before looking again: requests ahead may have left, or others may have
been refused, meanwhile.
"""


def _read_clock() -> int:
    return time.monotonic_ns() // 1000


class RateLimiter:
    """Holds the `RateState` of one client, and the line of its requests.

    `clock` returns microseconds that never go backwards.
    """

    def __init__(self, clock: Callable[[], int] = _read_clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = RateState()
        self._waiting: deque[object] = deque()

    def wait(self, timeout: float, sleep: Callable[[float], object]) -> int | Failure:
        """Sleep until a request may be sent, and return the time.

        Its failure if that cannot be within `timeout` seconds.
        """
        ticket = object()
        end = self._clock() + round(timeout * SECOND)
        try:
            while True:
                now, delay = self.reserve(ticket)
                if delay <= 0:
                    return now
                refusal = refuse_delay(delay / SECOND, (end - now) / SECOND)
                if refusal is not None:
                    return refusal
                sleep(min(delay / SECOND, MAX_SLEEP))
        finally:
            self.cancel(ticket)

    def reserve(self, ticket: object) -> tuple[int, int]:
        """Return the time, and 0 if the request may be sent now.

        Otherwise its place in the line is kept, and the delay is told, in microseconds.

        Only who leaves now reserves: what is learned meanwhile holds for all who wait, and one that
        gives up leaves no gap.
        """
        with self._lock:
            now = self._clock()
            state, start = self._state.reserve(now)
            spacing = state.get_spacing()
            if spacing and ticket not in self._waiting:
                self._waiting.append(ticket)
            place = self._waiting.index(ticket) if spacing else 0
            delay = start + place * spacing - now
            if delay <= 0:
                self._state = state
                self._remove(ticket)
            return now, max(0, delay)

    def cancel(self, ticket: object) -> None:
        """Remove a request that will not be sent."""
        if self._waiting:
            with self._lock:
                self._remove(ticket)

    def slow_down(self, turn: int, retry_after: float | None) -> None:
        """Make all calls wait, after a 429 to the request of this `turn`.

        `retry_after` is in seconds.
        """
        with self._lock:
            self._state = self._state.slow_down(self._clock(), retry_after, turn)

    def _remove(self, ticket: object) -> None:
        if ticket in self._waiting:
            self._waiting.remove(ticket)
