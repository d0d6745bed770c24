"""The embedded database of batches.

One SQLite file in the state directory, 0600, for one runner at a time.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from sealpipe.batch.database.interface import (
    Database,
    Dialect,
    Parameters,
    Transaction,
    Values,
    spell,
)
from sealpipe.errors import StateError
from sealpipe.state.files import make_private_directory

FILE_NAME: Final = "batches.sqlite3"
_BUSY_TIMEOUT = 30.0  # seconds to wait for another process that writes
_JOINED_TIMEOUT = 60.0
"""Seconds that a runner waits for those who ask for something by hand."""
_LOCK_WAIT = 0.05  # seconds between two attempts
_OLDEST = (3, 38)  # RETURNING, MATERIALIZED, and JSON in every build
_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # what is recorded as `sending` must be on disk before it is sent
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",
    "PRAGMA cell_size_check = ON",
)


T = TypeVar("T")


class SqliteDatabase(Database):
    """The file of one state directory. Its connection serves every thread, one after another."""

    dialect = Dialect(
        integer="INTEGER",
        blob="BLOB",
        lock_row="",
        states="SELECT value FROM json_each(:states)",
        find_meta="SELECT name FROM sqlite_master WHERE name = 'sealpipe_meta'",
        parameter=r":\1",
    )

    is_embedded = True

    def __init__(self, folder: Path) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StateError(
                f"this Python's SQLite is {sqlite3.sqlite_version}, and batches need 3.38 or newer",
                remedy="use a newer Python, or PostgreSQL: --database",
            )
        self.path = make_private_directory(folder) / FILE_NAME
        self.description = f"SQLite file {self.path}"
        self._lock = threading.RLock()
        _create_private_file(self.path)
        self._connection = self._translate(self._connect)

    def read(self, statement: str, **parameters: object) -> list[Values]:
        with self._lock:
            return self.run(statement, parameters)

    @contextmanager
    def transaction(self, batch: str = "", *, exclusive: bool = False) -> Iterator[Transaction]:
        """Begin a transaction: SQLite allows one writer, so every one is exclusive."""
        del batch, exclusive
        with self._lock:
            self.run("BEGIN IMMEDIATE", {})
            try:
                yield _SqliteTransaction(self)
                self.run("COMMIT", {})
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has undone it by itself after some errors
                    self._connection.execute("ROLLBACK")
                raise

    def read_clock(self) -> int:
        return time.time_ns() // 1000

    @contextmanager
    def lock_runner(self) -> Iterator[None]:
        with self._open_lock() as descriptor:
            ends_at = time.monotonic() + _JOINED_TIMEOUT
            while not _try_lock(descriptor, fcntl.LOCK_EX):
                # Whoever asks for something by hand shares the lock, and is done with it soon.
                is_shared = _try_lock(descriptor, fcntl.LOCK_SH)
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                if not is_shared or time.monotonic() > ends_at:
                    raise StateError(
                        f"another `sealpipe batch run` or `worker` uses the {self.description}",
                        remedy="wait for it; several at once need PostgreSQL: --database",
                    )
                time.sleep(_LOCK_WAIT)
            yield

    @contextmanager
    def join_runner(self) -> Iterator[bool]:
        with self._open_lock(".hand.lock") as hand, self._open_lock() as descriptor:
            yield _try_lock(hand, fcntl.LOCK_EX) and _try_lock(descriptor, fcntl.LOCK_SH)

    @contextmanager
    def _open_lock(self, suffix: str = ".lock") -> Iterator[int]:
        """Open the file of a lock, which is released at the end of the block.

        It is a file of its own: closing any descriptor of SQLite's would release SQLite's locks.
        """
        path = self.path.with_suffix(suffix)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{path} cannot be opened: {error.strerror}") from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def run(self, statement: str, parameters: Parameters) -> list[Values]:
        """Run a statement, in the transaction of this thread if there is one."""
        spelled = spell(statement, self.dialect)
        return self._translate(lambda: self._connection.execute(spelled, parameters).fetchall())

    def run_many(self, statement: str, rows: Iterable[Parameters]) -> int:
        """Run a statement for each set of parameters, in the transaction of this thread."""
        spelled = spell(statement, self.dialect)
        return self._translate(lambda: self._connection.executemany(spelled, rows).rowcount)

    def _connect(self) -> sqlite3.Connection:
        # transactions are begun by hand: the module's own handling differs by version
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in _SETTINGS:
                connection.execute(setting).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _translate(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:  # SQLite's messages name tables and columns, never values
            problem = str(error)
        raise StateError(
            f"the {self.description} cannot be used: {problem}",
            remedy="free space on its disk, or wait for the process that locks it; a damaged file "
            "is restored from a backup, then `sealpipe batch adopt FILE` finds what was sent since",
        )


class _SqliteTransaction(Transaction):
    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def run(self, statement: str, **parameters: object) -> list[Values]:
        return self._database.run(statement, parameters)

    def run_many(self, statement: str, rows: Iterable[Parameters]) -> int:
        return self._database.run_many(statement, rows)

    def run_script(self, script: str) -> None:
        raise NotImplementedError  # only PostgreSQL has tables of somebody else's


def _try_lock(descriptor: int, kind: int) -> bool:
    """Lock a file if that is possible now."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _create_private_file(path: Path) -> None:
    """Make the file before SQLite does, private: -wal and -shm get its mode."""
    try:
        with suppress(FileExistsError):
            os.close(
                os.open(
                    path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
                )
            )
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise StateError(
                f"{path} is not a file of this user", remedy="inspect it, and move it away"
            )
        if stat.S_IMODE(status.st_mode) != 0o600:
            path.chmod(0o600)
    except OSError as error:
        raise StateError(f"{path} cannot be opened: {error.strerror}") from None
