"""A time limit for SDKs that make their own connections and know no deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def run_with_timeout(seconds: float, work: Callable[[], T]) -> T:
    """Return what the work returns, or raise what it raises. TimeoutError where it takes longer: it is left to run."""
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that waits
            raised.append(error)

    worker = threading.Thread(target=run, name="sealpipe-time-limit", daemon=True)
    worker.start()
    worker.join(seconds)
    if raised:
        raise raised[0]
    if not given:
        raise TimeoutError("it did not come to an end in time")
    return given[0]
