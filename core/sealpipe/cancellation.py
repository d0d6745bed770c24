"""`Cancellation`: how the caller of one call ends it, although a thread cannot be unwound.

The thread asks before each step whether its caller is still there. So it ends after its present step, as if it were
killed there, and its `finally` blocks unlock what it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar

from sealpipe.errors import UsageError


class CancelledCallError(BaseException):
    """The caller has cancelled the call: no step begins any more. No exception that a handler of errors catches."""


class Cancellation:
    """Whether one call is cancelled; its thread and its caller share it.

    Code that blocks has one that nobody cancels: there a signal interrupts.
    """

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._cancelled = threading.Event()
        self._is_changing = self._is_interrupted = False
        self._interrupt: Callable[[], object] | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled."""
        return self._cancelled.is_set()

    def begin(self, *, is_changing: bool = False) -> None:
        """Begin a step of the thread, one that changes something elsewhere or not. Raises CancelledCallError."""
        with self._state:
            if self.is_cancelled:
                raise CancelledCallError
            self._is_changing = is_changing

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises CancelledCallError, at once when the caller cancels."""
        if self._cancelled.wait(seconds):
            raise CancelledCallError

    def wait(self, seconds: float) -> None:
        """Sleep between two steps, where nothing is under way. Raises CancelledCallError."""
        self.begin()
        self.sleep(seconds)

    def notify(self, callback: Callable[[], object]) -> None:
        """Call back where the caller is. Raises what the callback raises, and CancelledCallError."""
        outcome = callback()
        if hasattr(outcome, "__await__"):
            if hasattr(outcome, "close"):
                outcome.close()
            raise UsageError("the callback is asynchronous, and this client is not", remedy="use AsyncClient")

    def start_blocking(self, interrupt: Callable[[], object]) -> bool:
        """Say what ends that for which the thread waits from now on. False: it is not to wait."""
        with self._state:
            self._interrupt = interrupt
            return not self._is_interrupted

    def stop_blocking(self) -> None:
        """Say that the thread waits no longer."""
        with self._state:
            self._interrupt = None

    def cancel(self) -> bool:
        """Cancel, and return whether a change is under way. Called by the caller, never by the thread."""
        with self._state:
            self._cancelled.set()
            return self._is_changing

    def interrupt(self) -> None:
        """End what the cancelled thread waits for, such as a response. Called by the caller, never by the thread."""
        with self._state:
            self._is_interrupted = True
            if self._interrupt is not None:
                self._interrupt()


_CURRENT: ContextVar[Cancellation | None] = ContextVar("sealpipe cancellation", default=None)


def current() -> Cancellation:
    """Return the cancellation of the call that this thread works for; where there is none, one that nobody cancels."""
    return _CURRENT.get() or Cancellation()


def make_current(cancellation: Cancellation) -> None:
    """Let `current` return this one in the present context, which is a copy for the call."""
    _CURRENT.set(cancellation)
