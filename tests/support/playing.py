"""A service and a clock that a test plays: what is sent gets its answers, and waits take no
time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cancellation import Cancellation, make_current
from sealpipe.session import Session, Transport

T = TypeVar("T")


def never(seconds: float) -> None:
    """For work that does not wait."""
    raise AssertionError(f"it waits for {seconds} s")


class Played(Cancellation):
    """Waits that take no time: `wait` gets their seconds."""

    def __init__(self, wait: Callable[[float], object]) -> None:
        super().__init__()
        self._wait = wait

    def wait(self, seconds: float) -> None:
        """Tell how long it would be."""
        self._wait(seconds)


class PlayedNetwork(Transport):
    """What answers in place of the service."""

    def __init__(self, answer: Callable[[Operation[Any], float], Response | Failure]) -> None:
        super().__init__()
        self._answer = answer

    def send(self, _: Session, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Answer."""
        return self._answer(operation, timeout)


def play(work: Callable[[], T], wait: Callable[[float], object] = never) -> T:
    """Do work whose waits go to `wait`."""

    def run() -> T:
        make_current(Played(wait))
        return work()

    return copy_context().run(run)
