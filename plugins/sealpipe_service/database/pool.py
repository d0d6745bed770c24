"""A few connections that threads take turns at: made when they are needed, never more than so many,
and only used in the process that made them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from .access import UnavailableError


class Poolable(Protocol):
    """A connection."""

    def is_idle(self) -> bool:
        """Return whether another thread can use it: it is open, and in no transaction."""

    def is_lost(self) -> bool:
        """Return whether its other side has not answered."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Poolable)


class Pool(Generic[C]):
    """At most `size` connections. Who finds all in use waits, `seconds` at most."""

    def __init__(self, connect: Callable[[], C], size: int, seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        self._free = threading.BoundedSemaphore(size)
        self._idle: list[C] = []
        self._process = os.getpid()

    @contextmanager
    def take(self, begin: Callable[[C], None]) -> Iterator[C]:
        """Use a connection on which `begin` was run.

        One that waited here may have been closed by the other side meanwhile: where `begin` raises
        UnavailableError there, a new one is tried. Raises UnavailableError.
        """
        if not self._free.acquire(timeout=self._seconds):
            raise UnavailableError("all connections to the database are in use")
        try:
            connection = self._begin(begin)
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._free.release()

    def _begin(self, begin: Callable[[C], None]) -> C:
        waited = self._take_idle()
        if waited is not None:
            try:
                begin(waited)
            except UnavailableError:
                if not waited.is_lost():
                    self._give_back(waited)
                    raise
                waited.close()
                self.close()  # the others were cut, too
            except BaseException:
                self._give_back(waited)
                raise
            else:
                return waited
        made = self._connect()
        try:
            begin(made)
        except BaseException:
            made.close()
            raise
        return made

    def _take_idle(self) -> C | None:
        if self._process != os.getpid():
            # A fork's copies: the process that made them uses them. They are not closed here, for
            # that would end its sessions.
            self._idle, self._process = [], os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, connection: C) -> None:
        if connection.is_idle():
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
        while (connection := self._take_idle()) is not None:
            connection.close()
