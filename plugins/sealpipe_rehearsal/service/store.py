"""What the service keeps: SQLite, in memory or in a file of mode 0600 that survives a restart.

Of every secret that arrives (auth secret, access token, passcode verifier) only SHA-256 is a column.
What must not survive a crash, the marker of a call in flight, is not here but in `idempotency`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
    name TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    view_protection INTEGER NOT NULL,
    zero_knowledge_enrolled INTEGER NOT NULL,
    zero_knowledge_feature INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    key_id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (name),
    name TEXT NOT NULL,
    auth_sha256 TEXT NOT NULL,
    scopes TEXT NOT NULL,
    custody_requested INTEGER NOT NULL,
    custody_public_key TEXT,
    created_at REAL NOT NULL,
    last_used_at REAL,
    revoked_at REAL,
    compromised_at REAL
);
CREATE TABLE IF NOT EXISTS shares (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    key_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    encryption_type TEXT NOT NULL,
    data TEXT NOT NULL,
    access_token_sha256 TEXT NOT NULL,
    passcode_verifier_sha256 TEXT,
    title TEXT,
    description TEXT,
    expired_at TEXT,
    expires REAL,
    access_counts_left INTEGER,
    passcode_attempts_left INTEGER NOT NULL,
    item_key_wrap TEXT,
    custody TEXT NOT NULL,
    timed_view INTEGER,
    notify_on TEXT,
    organization_id TEXT,
    ended_at REAL,
    ended_by TEXT
);
CREATE INDEX IF NOT EXISTS shares_newest ON shares (account, number);
CREATE INDEX IF NOT EXISTS shares_live ON shares (account, expires) WHERE ended_at IS NULL;
CREATE TABLE IF NOT EXISTS idempotency (
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    answer BLOB NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
);
"""

_TABLES = ("idempotency", "shares", "keys", "accounts")

Values = Mapping[str, object]


class StateUnusable(Exception):  # says what is the case
    """The state file cannot be opened: another service has it, or it is not one of ours."""


class Store:
    """One connection, used by any thread, one at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        if path is not None:
            _make_private(path)
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path, check_same_thread=False, isolation_level=None, timeout=1
            )
        except sqlite3.Error as error:
            raise StateUnusable(f"{path}: {error}") from error
        try:
            self._connection.row_factory = sqlite3.Row
            # Exclusive: two services on one file would not see each other's calls in flight.
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._connection.close()
            raise StateUnusable(f"{path}: {error}") from error

    def rows(self, statement: str, values: Values) -> list[sqlite3.Row]:
        """Every row that a statement finds."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def row(self, statement: str, values: Values) -> sqlite3.Row | None:
        """The first row that a statement finds."""
        with self._lock:
            found: sqlite3.Row | None = self._connection.execute(statement, values).fetchone()
            return found

    def change(self, statement: str, values: Values) -> int:
        """Run a statement that changes; how many rows it changed."""
        with self._lock:
            return self._connection.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or none of it; nobody else reads or writes meanwhile."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def clear(self) -> None:
        """Forget everything."""
        with self.transaction():
            for table in _TABLES:
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608  # names from the list above

    def close(self) -> None:
        """Close the file. The store is not usable afterwards."""
        with self._lock:
            self._connection.close()


def _make_private(path: Path) -> None:
    # SQLite gives its journal the mode of the file that it belongs to, so this one call settles all of them.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateUnusable(f"{path}: {error.strerror}") from error
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
