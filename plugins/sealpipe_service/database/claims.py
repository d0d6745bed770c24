"""Which creates are in flight at a database's file: each is a lock on a byte of a file beside it.
The kernel takes a process's locks back when it ends, however it does.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .access import UnavailableError

_PLACES = 2**62
"""How many bytes are locked: a file need not be as long."""


class Claims:
    """The locks of this process among those of others. In memory (None) it is alone.

    Locks are a process's: it has one of these for a file.
    """

    def __init__(self, database: Path | None) -> None:
        self._database = database
        self._file: int | None = None
        self._held: set[int] = set()
        self._turns = threading.Lock()

    @contextmanager
    def hold(self, *numbers: int) -> Iterator[int]:
        """Hold locks up to the first that is not free, and free the last of them first.

        Gives how many are held. Raises UnavailableError.
        """
        with ExitStack() as stack:
            held = 0
            for place in (number % _PLACES for number in numbers):
                if not self._take(place):
                    break
                stack.callback(self._release, place)
                held += 1
            yield held

    def _take(self, place: int) -> bool:
        with self._turns:
            if place in self._held:
                return False
            if self._database is not None:
                if self._file is None:
                    self._file = _open(self._database)
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                except (BlockingIOError, PermissionError):  # as systems call it
                    return False
                except OSError as error:  # a file system without locks, or too many
                    raise _explain(error) from error
            self._held.add(place)
            return True

    def _release(self, place: int) -> None:
        with self._turns:
            self._held.discard(place)
            if self._file is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Close the file, which stays: who removed it would part those who have it open."""
        with self._turns:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def file_of(database: Path) -> Path:
    """Return the file of locks of a database."""
    return database.with_name(f"{database.name}-claims")


def _open(database: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(file_of(database), flags, 0o600)
        with suppress(PermissionError):  # root leaves it to whose the database is, as SQLite does
            owner = database.stat()
            os.fchown(file, owner.st_uid, owner.st_gid)
    except OSError as error:
        raise _explain(error) from error
    return file


def _explain(error: OSError) -> UnavailableError:
    return UnavailableError(f"the SQLite file's claims: {error.strerror}")
