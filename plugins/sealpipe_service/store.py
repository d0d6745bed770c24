"""The service's data: SQLite, in memory or in a file of mode 0600 that survives a restart.

Of every secret that arrives (auth secret, access token, passcode verifier) only the SHA-256 is
stored. Webhook secrets, which the service creates and signs with, are stored as plain text. Markers
of calls in flight must not survive a crash, so they are in `idempotency`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .store_schema import SCRIPT, TABLES, VERSION

Values = Mapping[str, object]


class StateFileError(Exception):
    """The state file cannot be opened: another service uses it, or it is not a state file."""


class Store:
    """One SQLite connection, shared by all threads, one at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        if path is not None:
            _make_private(path)
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path,
                check_same_thread=False,
                isolation_level=None,
                timeout=1,
            )
        except sqlite3.Error as error:
            raise StateFileError(f"{path}: {error}") from error
        try:
            self._connection.row_factory = sqlite3.Row
            # exclusive: two services on one file would not see each other's calls in flight
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._check_version()  # checked before writing: it may be another program's database
            if path is not None:
                path.chmod(0o600)  # SQLite creates its journal with the same mode
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._create_tables()
        except sqlite3.Error as error:
            self._connection.close()
            raise StateFileError(f"{path}: {error}") from error

    def _check_version(self) -> None:
        version, tables = (
            self._connection.execute(query).fetchone()[0]
            for query in ("PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
        )
        if tables and version != VERSION:
            raise sqlite3.DatabaseError(
                "it belongs to another version of the rehearsal or to another program"
            )

    def _create_tables(self) -> None:
        self._connection.executescript(SCRIPT)

    def rows(self, statement: str, values: Values) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def row(self, statement: str, values: Values) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        with self._lock:
            first_row: sqlite3.Row | None = self._connection.execute(statement, values).fetchone()
            return first_row

    def change(self, statement: str, values: Values) -> int:
        """Run a statement; return the number of changed rows."""
        with self._lock:
            return self._connection.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all statements of the block or none; other threads wait."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def clear(self) -> None:
        """Delete all rows."""
        with self.transaction():
            for table in TABLES:
                # The names are from the list above.
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608

    def close(self) -> None:
        """Close the file. The store is not usable afterwards."""
        with self._lock:
            self._connection.close()


def _make_private(path: Path) -> None:
    """Create the file if it does not exist; refuse a symbolic link."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StateFileError(f"{path}: {error.strerror}") from error
