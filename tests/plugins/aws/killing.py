"""sealpipe killed between any two calls to AWS, or while an answer is on its way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from plugins.aws.front import Asked, Front, Refusal
from sealpipe.errors import PluginError
from sealpipe.plugin import WriteResult

HANG_UP = Refusal(0, "")


def killed_everywhere(front: Front, put: Callable[[str], WriteResult]) -> Iterator[str]:
    """A place for each call that a run may be killed before or after; each is then run again to its end.

    `put` stores in the place that it is given, twice the same. Ends with the kill that comes too late.
    """
    for number in itertools.count():
        for late in (False, True):
            place = f"killed-{number}-{late}"
            front.asked.clear()
            front.answer = _dead_from(front, number + late)
            front.lost = (lambda n: lambda _: len(front.asked) == n)(number + 1) if late else (lambda _: False)
            try:
                put(place)
                done = True
            except PluginError:
                done = False
            reached = len(front.asked) > number
            front.answer, front.lost = (lambda _: None), (lambda _: False)
            if done and not reached:
                return
            put(place)
            yield place


def _dead_from(front: Front, number: int) -> Callable[[Asked], Refusal | None]:
    return lambda _: HANG_UP if len(front.asked) > number else None


def once(front: Front, operation: str, do: Callable[[], object]) -> None:
    """Let somebody do something right before the first such call reaches AWS."""
    todo = [do]

    def answer(asked: Asked) -> None:
        if asked.operation == operation and todo:
            todo.pop()()

    front.answer = answer


def lose_first(front: Front, operation: str) -> None:
    """Let the answer to the first such call get lost."""
    todo = [operation]

    def lost(asked: Asked) -> bool:
        return bool(todo) and asked.operation == operation and bool(todo.pop())

    front.lost = lost


def deny(front: Front, operation: str, code: str = "AccessDeniedException", status: int = 400) -> None:
    """Refuse an operation."""
    front.answer = lambda asked: Refusal(status, code) if asked.operation == operation else None
