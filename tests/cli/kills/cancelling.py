"""Commands in the process of the tests, cancelled at one look after another, as a thread of
`AsyncClient` is.

A look is where a thread asks whether its caller is still there: before each step and each note of
what comes. So a cancel at any other moment ends where one at the next look does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import Any

from sealpipe.cancellation import Cancellation, CancelledCallError, make_current
from sealpipe.cli import main
from support.killing import KILLED, NEVER, InProcess, Killer
from support.strace import Point
from support.terminal import Done

LOOK = "look"


class CancelledAt(Cancellation):
    """Its caller has cancelled when the thread looks for the `number`th time; 0: never."""

    def __init__(self, number: int = 0) -> None:
        super().__init__()
        self._number = number
        self.looks = 0

    @property
    def is_cancelled(self) -> bool:
        self.looks += 1
        return 0 < self._number <= self.looks


class Canceller(Killer):
    """Runs one command, whose caller cancels at a look."""

    def __init__(self, number: int = 0) -> None:
        super().__init__(NEVER)
        self.cancellation = CancelledAt(number)

    def carry_out(self, words: Sequence[str]) -> int:
        try:
            return copy_context().run(self._run, words)
        except CancelledCallError:
            return KILLED

    def _run(self, words: Sequence[str]) -> int:
        make_current(self.cancellation)
        return main.run(words)


def list_looks(
    _job: InProcess, _log: Path, run: Callable[[Any], Done], *_: object, code: int = 0
) -> list[Point]:
    """The looks of a command that nobody disturbs, then one beyond: in place of
    `InProcess.steps`.
    """
    canceller = Canceller()
    done = run(canceller)
    assert done.code == code, done
    return [Point(LOOK, number) for number in range(1, canceller.cancellation.looks + 2)]


def cancel_at(_job: InProcess, point: Point, _log: Path, _signal: str = "SIGKILL") -> Killer:
    """What a command is cancelled by, or killed at a point that is no look: in place of
    `InProcess.killing`.
    """
    return Canceller(point.number) if point.name == LOOK else Killer(point)
