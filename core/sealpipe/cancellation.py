"""`Cancellation`: how the caller of one call ends it, although a thread cannot be unwound.

The thread looks before each step whether its caller is still there: before each call of a plugin
and each request to the service (`step`), each note that announces a change (`raise_if_cancelled`)
and each sleep. So it ends after its present step, as if it were killed there, and its `finally`
blocks unlock what it holds. What has happened is noted all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sealpipe.errors import UsageError


class CancelledCallError(BaseException):
    """The caller has cancelled the call: no step begins any more.

    No exception that a handler of errors catches.
    """


class Cancellation:
    """Whether one call is cancelled; its thread and its caller share it.

    Code that blocks has one that nobody cancels: there a signal interrupts.
    """

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._cancelled = threading.Event()
        self._is_interrupted = False
        self._changes = 0
        """How many changes of something elsewhere are under way."""
        self.has_begun_change = False
        self._interrupt: Callable[[], object] | None = None

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller has cancelled."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise CancelledCallError if the caller has cancelled."""
        if self.is_cancelled:
            raise CancelledCallError

    @contextmanager
    def step(self, *, is_changing: bool = False) -> Iterator[None]:
        """Do a step of the thread, one that changes something elsewhere or not.

        Raises CancelledCallError before it.
        """
        with self._state:
            self.raise_if_cancelled()
            self._changes += is_changing
            self.has_begun_change = self.has_begun_change or is_changing
        try:
            yield
        finally:
            with self._state:
                self._changes -= is_changing

    def sleep(self, seconds: float) -> None:
        """Sleep. Raises CancelledCallError, at once when the caller cancels."""
        if self._cancelled.wait(seconds):
            raise CancelledCallError

    def wait(self, seconds: float) -> None:
        """Sleep between two steps, where nothing is under way. Raises CancelledCallError."""
        self.raise_if_cancelled()
        self.sleep(seconds)

    def notify(self, callback: Callable[[], object]) -> None:
        """Call back where the caller is.

        Raises what the callback raises, and CancelledCallError.
        """
        outcome = callback()
        if hasattr(outcome, "__await__"):
            if hasattr(outcome, "close"):
                outcome.close()
            raise UsageError(
                "the callback is asynchronous, and this client is not", remedy="use AsyncClient"
            )

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
        """Cancel, and return whether a change is under way.

        Called by the caller, never by the thread.
        """
        with self._state:
            self._cancelled.set()
            return self._changes > 0

    def interrupt(self) -> None:
        """End what the cancelled thread waits for, such as a response.

        Called by the caller, never by the thread.
        """
        with self._state:
            self._is_interrupted = True
            if self._interrupt is not None:
                self._interrupt()


_CURRENT: ContextVar[Cancellation | None] = ContextVar("sealpipe cancellation", default=None)


def current() -> Cancellation:
    """Return the cancellation of this thread's call, or one that nobody cancels."""
    return _CURRENT.get() or Cancellation()


def make_current(cancellation: Cancellation) -> None:
    """Let `current` return this one in the present context, which is a copy for the call."""
    _CURRENT.set(cancellation)
