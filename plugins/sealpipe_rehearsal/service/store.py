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
    numbers TEXT NOT NULL,
    view_protection INTEGER NOT NULL,
    zero_knowledge_enrolled INTEGER NOT NULL,
    zero_knowledge_feature INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    key_id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    organization TEXT,
    name TEXT NOT NULL,
    auth_sha256 TEXT NOT NULL,
    scopes TEXT NOT NULL,
    custody_requested INTEGER NOT NULL,
    custody_public_key TEXT,
    created_at REAL NOT NULL,
    last_used_at REAL,
    revoked_at REAL,
    compromised_at REAL,
    granted_at REAL
);
CREATE TABLE IF NOT EXISTS shares (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    space TEXT NOT NULL,
    owner TEXT NOT NULL,
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
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    space TEXT NOT NULL,
    owner TEXT NOT NULL,
    key_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    title TEXT NOT NULL,
    public_key TEXT NOT NULL,
    fields TEXT NOT NULL,
    description TEXT,
    expired_at TEXT NOT NULL,
    expires REAL NOT NULL,
    max_submission INTEGER,
    access_counts_left INTEGER,
    passcode_sha256 TEXT,
    requires_login INTEGER,
    requires_mfa INTEGER,
    restricted_domain TEXT,
    ip_whitelist TEXT,
    organization_id TEXT,
    ended_at REAL,
    ended_by TEXT
);
CREATE TABLE IF NOT EXISTS submissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    request INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    encryption_type TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS submissions_of ON submissions (request, number);
CREATE TABLE IF NOT EXISTS views (
    space TEXT NOT NULL,
    day TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (space, day)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    what TEXT NOT NULL,
    space TEXT NOT NULL,
    live INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (what, space)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS idempotency (
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    answer BLOB NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
);
"""

# What shares and requests have in common: found newest first and by when they end, and counted as they change,
# so that a page of 20,000 costs what a page of ten does.
_EACH = """
CREATE INDEX IF NOT EXISTS {what}_live ON {what} (space, number) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS {what}_ended ON {what} (space, ended_at, number) WHERE ended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS {what}_due ON {what} (expires) WHERE ended_at IS NULL AND expires IS NOT NULL;
CREATE TRIGGER IF NOT EXISTS {what}_made AFTER INSERT ON {what} BEGIN
    INSERT OR IGNORE INTO counts (what, space) VALUES ('{what}', new.space);
    UPDATE counts SET live = live + 1 WHERE what = '{what}' AND space = new.space;
END;
CREATE TRIGGER IF NOT EXISTS {what}_over AFTER UPDATE OF ended_at ON {what}
WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE counts SET live = live - 1, ended = ended + 1 WHERE what = '{what}' AND space = new.space;
END;
CREATE TRIGGER IF NOT EXISTS {what}_gone AFTER DELETE ON {what} BEGIN
    UPDATE counts SET live = live - (old.ended_at IS NULL), ended = ended - (old.ended_at IS NOT NULL)
    WHERE what = '{what}' AND space = old.space;
END;
"""

VERSION = 2
"""Of the tables above; a file with another one is not read."""

_TABLES = ("idempotency", "submissions", "requests", "shares", "views", "counts", "keys", "accounts")

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
            self._check_version()  # before anything is written: it may be somebody else's database
            if path is not None:
                path.chmod(0o600)  # SQLite gives its journal the mode of the file that it belongs to
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._adopt()
        except sqlite3.Error as error:
            self._connection.close()
            raise StateUnusable(f"{path}: {error}") from error

    def _check_version(self) -> None:
        version, tables = (
            self._connection.execute(question).fetchone()[0]
            for question in ("PRAGMA user_version", "SELECT COUNT(*) FROM sqlite_master")
        )
        if tables and version != VERSION:
            raise sqlite3.DatabaseError("it is of another version of the rehearsal, or of something else")

    def _adopt(self) -> None:
        script = _SCHEMA + "".join(_EACH.format(what=what) for what in ("shares", "requests"))
        self._connection.executescript(script + f"PRAGMA user_version = {VERSION};")

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
    """Make the file where there is none; refuse a link."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StateUnusable(f"{path}: {error.strerror}") from error
