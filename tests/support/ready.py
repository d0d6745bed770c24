"""Waiting for something to read; whatever its number: `select.select` takes none over 1023."""

from __future__ import annotations

import selectors
from collections.abc import Iterable
from typing import Protocol, TypeVar


class _File(Protocol):
    def fileno(self) -> int: ...


End = TypeVar("End", bound="int | _File")


def readable(ends: Iterable[End], seconds: float | None = None) -> list[End]:
    """Those with something to read, once there is one, or none after so many seconds."""
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ, end)
        return [key.data for key, _ in selector.select(seconds)]
