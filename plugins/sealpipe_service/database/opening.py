"""Opens the database at an address: `sqlite:///PATH`."""

from __future__ import annotations

from pathlib import Path

from .access import AddressError, Database, SchemaError
from .sqlite import Sqlite

_SQLITE = "sqlite:///"


def find_file(url: str) -> Path:
    """Return the file of a database. Raises AddressError."""
    path = url.removeprefix(_SQLITE)
    if path == url or not path:
        raise AddressError("the address is not sqlite:///PATH")
    return Path(path)


def open_database(url: str, *, is_checked: bool = False) -> Database:
    """Open a database that was made. Raises DatabaseError.

    Unless `is_checked`, its schema is checked first.
    """
    if not is_checked:
        check(url)
    return Sqlite(find_file(url))


def check(url: str) -> None:
    """Check that the tables are there, and of this version. Raises DatabaseError."""
    file = find_file(url)
    if not file.exists():
        raise SchemaError(f"there is no {describe(url)}")
    Sqlite(file).close()


def describe(url: str) -> str:
    """Return what a message may say of a database."""
    return f"SQLite file {find_file(url)}"
