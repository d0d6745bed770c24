"""The database on SQLite, in memory or in a file of mode 0600, which any number of processes share.

A process has three connections to a file, each for one thread at a time: one reads, one commits to
the disk, and one commits without waiting for it. SQLAlchemy is not imported: see `compiling`.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import versions
from .access import (
    InFlightError,
    Row,
    SchemaError,
    Transaction,
    UnavailableError,
    number_of,
)
from .claims import Claims, file_of
from .sqlite_text import SCHEMA, STATEMENTS

APPLICATION_ID = 0x5EA19195
"""Tells our files from those of other programs."""
BUSY_SECONDS = 5.0


class DatabaseFileError(SchemaError):
    """The file cannot be used: it is another program's, or of another version."""

    remedy = "name the service's file, or a new one in a folder that you can write to"


class Connection:
    """A connection that one thread uses at a time: who holds its `lock`."""

    def __init__(
        self,
        path: Path | None,
        source: Callable[[], float],
        *pragmas: str,
        lock: threading.Lock | None = None,
    ) -> None:
        self.lock = lock or threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path,
            check_same_thread=False,
            isolation_level=None,
            timeout=BUSY_SECONDS,
        )
        self._connection.row_factory = sqlite3.Row
        self._connection.create_function("clock_timestamp", 0, source)
        for pragma in pragmas:
            self.execute(f"PRAGMA {pragma}")

    def execute(self, text: str) -> Sequence[Sequence[int]]:
        return self._connection.execute(text).fetchall()

    def rows(self, statement: str, /, **values: object) -> Sequence[Row]:
        return self.execute_text(STATEMENTS[statement], values)

    def execute_text(self, text: str, values: Mapping[str, object]) -> Sequence[Row]:
        return self._connection.execute(text, values).fetchall()

    def row(self, statement: str, /, **values: object) -> Row | None:
        # All rows: a statement that changes is finished only then.
        found = self.rows(statement, **values)
        return found[0] if found else None

    def change(self, statement: str, /, **values: object) -> int:
        return self._connection.execute(STATEMENTS[statement], values).rowcount

    def later(self, statement: str, /, **values: object) -> None:
        self.change(statement, **values)

    def alone(self, statement: str, values: Mapping[str, object]) -> Sequence[Row]:
        """Run a statement that is a transaction by itself."""
        with self.lock:
            try:
                return self.rows(statement, **values)
            except sqlite3.OperationalError as error:
                raise _explain(error) from error

    @contextmanager
    def transaction(self, begin: str) -> Iterator[Transaction]:
        with self.lock:
            try:
                self.execute(begin)
                yield self
                self.execute("COMMIT")
            except sqlite3.OperationalError as error:
                raise _explain(error) from error
            finally:
                if self._connection.in_transaction:
                    self.execute("ROLLBACK")

    def close(self) -> None:
        with self.lock:
            self._connection.close()


def _explain(error: sqlite3.OperationalError) -> UnavailableError:
    """Return an error as ours: the file is in use, or its disk is full."""
    return UnavailableError(f"the SQLite file: {error}")


@dataclass(frozen=True)
class _Claim:
    database: Sqlite
    replay: Row | None

    def write(self) -> AbstractContextManager[Transaction]:
        return self.database.write()


def read_version(connection: Connection) -> str | None:
    """Return the version of the tables; None if there are none. Raises DatabaseError of sqlite3."""
    (application,), (tables,), (versioned,) = (
        connection.execute(query)[0]
        for query in (
            "PRAGMA application_id",
            "SELECT COUNT(*) FROM sqlite_master",
            "SELECT COUNT(*) FROM sqlite_master WHERE name = 'service_version'",
        )
    )
    if not tables:
        return None
    if application != APPLICATION_ID:
        raise sqlite3.DatabaseError("it belongs to another program")
    row = connection.row("version") if versioned else None
    return versions.UNKNOWN if row is None else str(row["version_num"])


def _write_ahead(connection: Connection) -> None:
    """Switch the file to a write-ahead log. Raises OperationalError.

    Processes that open a new file at the same moment: here SQLite does not wait for the others.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)


class Sqlite:
    """A `Database`. `source` is the time of its machine, in seconds since 1970.

    Raises DatabaseFileError. Use it only in the process that made it: connections do not survive a
    fork.
    """

    def __init__(self, path: Path | None = None, source: Callable[[], float] = time.time) -> None:
        if path is not None:
            _make_private(path)
            refuse_others(path)
        self._claims = Claims(path)
        try:
            self._open(path, source)
        except OSError as error:
            raise DatabaseFileError(f"{path}: {error.strerror}") from error
        except (sqlite3.Error, UnavailableError) as error:
            raise DatabaseFileError(f"{path}: {error}") from error

    def _open(self, path: Path | None, source: Callable[[], float]) -> None:
        self._writing = Connection(path, source)
        try:
            # Before anything is written: it may be another program's.
            with self._writing.transaction("BEGIN"):  # another process may be making the tables
                found = read_version(self._writing)
            if found is not None and (refusal := versions.refuse(found, "it")):
                raise sqlite3.DatabaseError(str(refusal))
            if path is not None:
                path.chmod(0o600)  # SQLite makes its journal with the same mode
            _write_ahead(self._writing)
            for pragma in ("synchronous=FULL", "secure_delete=ON"):
                self._writing.execute(f"PRAGMA {pragma}")
            self._make_tables()
            if path is None:
                self._reading = self._quick = self._writing
            else:
                self._reading = Connection(path, source, "query_only=ON")
                # In WAL mode this waits for no disk, except where the log is moved into the file.
                # Who changes takes turns anyway: SQLite itself would let them sleep.
                quick = ("synchronous=NORMAL", "secure_delete=ON")
                self._quick = Connection(path, source, *quick, lock=self._writing.lock)
                refuse_others(path)  # from now on its journal is there
        except BaseException:
            self._writing.close()
            raise

    def _make_tables(self) -> None:
        with self.write() as transaction:
            if read_version(self._writing) is not None:
                return  # another process was first
            for each in SCHEMA:
                self._writing.execute(each)
            self._writing.execute(f"PRAGMA application_id={APPLICATION_ID}")
            transaction.change("set_version", version=versions.VERSION)
            transaction.change("start_clock")

    def find(self, statement: str, /, **values: object) -> Sequence[Row]:
        """Run one statement that only reads, and return its rows."""
        return self._reading.alone(statement, values)

    def find_one(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement that only reads, and return its first row, if any."""
        found = self.find(statement, **values)
        return found[0] if found else None

    def change_quickly(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement as `write_quickly` does, and return its first row, if any."""
        found = self._quick.alone(statement, values)
        return found[0] if found else None

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Read with several statements, all from one moment."""
        with self._reading.transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def write(self, *, alone: str | None = None) -> Iterator[Transaction]:  # noqa: ARG002
        """Change: on disk before the block ends. All changes take turns."""
        with self._writing.transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def write_quickly(self) -> Iterator[Transaction]:
        """Change what may be lost when the machine fails, without waiting for disks."""
        with self._quick.transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def claim(self, key_id: str, name: str, body_mac: str) -> Iterator[_Claim]:
        """Claim an idempotency key while its create is handled, unless that was done already.

        The claim is two locks, as it is on PostgreSQL (see `claims`). Raises InFlightError.
        """
        with_body = number_of("create", key_id, name, body_mac)
        any_body = number_of("create", key_id, name)
        with self._claims.hold(with_body, any_body) as held:
            if held < 2:
                raise InFlightError(same_body=held == 0)
            # After the locks, so that it sees what was done before.
            yield _Claim(self, self.find_one("replay", key=key_id, under=name))

    def run_text(self, text: str, values: Mapping[str, object] | None = None) -> Sequence[Row]:
        """Run a statement that is none of the service's, as a rehearsal does; it is committed."""
        with self._writing.transaction("BEGIN IMMEDIATE"):
            return self._writing.execute_text(text, values or {})

    def scrub(self) -> None:
        """Empty the journal, which has pages as they were; what is being read stays for now."""
        with self._writing.lock:
            self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def connections(self) -> Collection[Connection]:
        """Return its connections."""
        return {self._reading, self._quick, self._writing}

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections():
            connection.close()
        self._claims.close()


def refuse_others(path: Path) -> None:
    """Raise DatabaseFileError if the file, or one of SQLite's beside it, is of another user.

    In a folder that others can write to, somebody could put a journal there first: they would read
    what is written, and SQLite would take over what it finds. Root may use the file of any user.
    """
    me = os.geteuid()
    owners = {me}
    journals = (path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))
    for each in (path, *journals, file_of(path)):
        try:
            found = each.lstat()
        except FileNotFoundError:
            continue
        if me == 0 and each is path:
            owners.add(found.st_uid)
        if not stat.S_ISREG(found.st_mode):
            raise DatabaseFileError(f"{each}: it is a link, or no file")
        if found.st_uid not in owners:
            raise DatabaseFileError(f"{each}: it belongs to another user")


def _make_private(path: Path) -> None:
    """Create the file if it does not exist; refuse a symbolic link."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise DatabaseFileError(f"{path}: {error.strerror}") from error
