"""A 429 makes the whole client wait, not only the call that got it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sealpipe.api.operation import Answer, Failure
from sealpipe.api.refusals import retry_after

LONGEST = 300.0


def held_back(pause: float) -> Failure:
    """What a call gets that may not leave in time."""
    return Failure(
        sent=False, detail="the service asked to wait for longer than there is time", retry_after=round(pause, 3)
    )


class Pacing:
    """When the next request may leave, shared by every call of one client. Seconds, monotonic clock.

    An absurd Retry-After must not end a client for good: none holds for longer than `LONGEST`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._not_before = 0.0

    def pause(self) -> float:
        """Seconds to wait before the next request."""
        with self._lock:
            return max(0.0, self._not_before - self._clock())

    def note(self, result: Answer | Failure) -> None:
        """Learn from what came back."""
        if not isinstance(result, Answer) or result.status != 429:
            return
        seconds = retry_after(result.headers.get("retry-after"))
        if seconds is not None:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + min(seconds, LONGEST))
