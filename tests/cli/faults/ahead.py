"""Tests that mostly wait for a deadline: the work of all of them is done at once, each asserts on
its own part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import pytest

AT_ONCE, WAITING_AT_ONCE = 4, 32
"""More of those that do not wait would only get into each other's way."""

WAITS_FOR_ALL = pytest.mark.timeout(600)
"""The limit of a test whose result comes after those of many others: it may be the first that is
asked.
"""


class Waiting(Protocol):
    @property
    def waits(self) -> bool: ...


K = TypeVar("K")
T = TypeVar("T")


@contextmanager
def ahead(work: Iterable[tuple[K, Waiting, Callable[[], T]]]) -> Iterator[dict[K, Future[T]]]:
    """The results to be, by their keys. What waits does so beside the others."""
    jobs = sorted(work, key=lambda job: not job[1].waits)
    with ThreadPoolExecutor(WAITING_AT_ONCE) as patient, ThreadPoolExecutor(AT_ONCE) as quick:
        yield {key: (patient if row.waits else quick).submit(do) for key, row, do in jobs}


def selected(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter in the tests of this module that are about to run, each once."""
    found: dict[int, Any] = {}
    for item in request.session.items:
        if (
            isinstance(item, pytest.Function)
            and item.module is request.module
            and hasattr(item, "callspec")
        ):
            value = item.callspec.params.get(parameter)
            if value is not None:
                found[id(value)] = value
    return list(found.values())
