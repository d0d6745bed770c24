"""What `decisions` needs of a database: statements by name, in transactions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Row(Protocol):
    """A row of a result, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any:
        """Return a column's value."""


class Transaction(Protocol):
    """Runs statements: all of them are committed, or none."""

    def rows(self, statement: str, /, **values: object) -> Sequence[Row]:
        """Run a statement and return all its rows."""

    def row(self, statement: str, /, **values: object) -> Row | None:
        """Run a statement and return its first row, if any."""

    def change(self, statement: str, /, **values: object) -> int:
        """Run a statement and return how many rows it changed."""

    def later(self, statement: str, /, **values: object) -> None:
        """Run a statement at the latest with the next one, or with the commit."""


class Claim(Protocol):
    """A create's claim on its idempotency key."""

    @property
    def replay(self) -> Row | None:
        """The record of a create that was done under this key: `body_mac` and `answer`."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Create."""


class Database(Protocol):
    """A database with the tables of `tables`. Each method is a transaction."""

    def find(self, statement: str, /, **values: object) -> Sequence[Row]:
        """Run one statement that only reads, and return its rows."""

    def find_one(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement that only reads, and return its first row, if any."""

    def change_quickly(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement as `write_quickly` does, and return its first row, if any.

        Where a connection is lost meanwhile it may be run twice.
        """

    def read(self) -> AbstractContextManager[Transaction]:
        """Read with several statements, all from one moment."""

    def write(self, *, alone: str | None = None) -> AbstractContextManager[Transaction]:
        """Change: on disk before the block ends.

        Those that are `alone` under the same name do not run at the same time: what decides about
        rows that are not there yet.
        """

    def write_quickly(self) -> AbstractContextManager[Transaction]:
        """Change what a failing machine may lose (rates, marks), without waiting for disks."""

    def claim(self, key_id: str, name: str, body_mac: str) -> AbstractContextManager[Claim]:
        """Claim an idempotency key while its create is handled, unless that was done already.

        Raises InFlightError.
        """

    def scrub(self) -> None:
        """Leave nothing in the database's own journal of what was dropped, as far as that goes."""

    def close(self) -> None:
        """Close it."""


def number_of(*words: str) -> int:
    """Return 64 bits of the hash of words, as the number of a lock."""
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class DatabaseError(Exception):
    """The database cannot be used. Its text holds no address, password or value.

    `remedy` is what its operator does next.
    """

    remedy = "check that its login may do this; its own log says why not"

    def __init__(self, text: str, remedy: str | None = None) -> None:
        super().__init__(text)
        self.remedy = remedy or self.remedy


class AddressError(DatabaseError):
    """The address is not one of a database."""


class SchemaError(DatabaseError):
    """The database has no tables of ours, or those of another version."""

    remedy = "give the service a database of its own"


class UnavailableError(DatabaseError):
    """The database does not answer for now, or lets nobody in."""

    remedy = "run it again later"


class InFlightError(Exception):
    """A create under the same key is in flight; `same_body` if it is the same create."""

    def __init__(self, *, same_body: bool) -> None:
        super().__init__()
        self.same_body = same_body
