"""What talks by a way of its own, and knows no deadline: it is waited for so long, and then left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What the work gives, or raises. TimeoutError where it takes longer: nothing ends it, and nobody waits for it."""
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that waits
            raised.append(error)

    worker = threading.Thread(target=run, name="sealpipe-within", daemon=True)
    worker.start()
    worker.join(seconds)
    if raised:
        raise raised[0]
    if not given:
        raise TimeoutError("it did not come to an end in time")
    return given[0]
