"""A 429 makes the whole client wait, not only the call that got it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sealpipe.api.operation import Answer, Failure
from sealpipe.api.refusals import retry_after


class Pacing:
    """When the next request may leave, shared by every call of one client. Seconds, monotonic clock."""

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
                self._not_before = max(self._not_before, self._clock() + seconds)
