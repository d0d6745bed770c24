"""The database at an address, `sqlite:///FILE` or `postgresql://...`, for those who operate a
server.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from . import postgresql, versions
from .access import AddressError, Database
from .postgresql import Postgresql
from .sqlite import Connection, DatabaseFileError, Sqlite, refuse_others
from .sqlite import read_version as read_file_version

_SQLITE = "sqlite:///"


def open_database(address: str, *, is_checked: bool = False) -> Database:
    """Open a database, and check its tables. Raises DatabaseError.

    `is_checked`: somebody has checked them, as who starts processes does for each of them; so one
    that starts again while PostgreSQL's tables are upgraded goes on.
    """
    if not is_checked:
        check(address)
    file = file_of(address)
    return Postgresql(address) if file is None else Sqlite(file)


def check(address: str) -> None:
    """Check that there are tables, of this program's version.

    Raises SchemaError if not, AddressError, and UnavailableError.
    """
    if refusal := versions.refuse(read_version(address), f"the {describe(address)}"):
        raise refusal


def describe(address: str) -> str:
    """Return which database an address is of, without user and password. Raises AddressError."""
    file = file_of(address)
    if file is None:
        return postgresql.describe(postgresql.read_address(address))
    return f"SQLite file {file}"


def has_password(address: str) -> bool:
    """Return whether an address holds a password, or may, for it cannot be read."""
    return not address.startswith("sqlite:") and postgresql.has_password(address)


def read_version(address: str) -> str | None:
    """Return the version of the tables; None if there are none. Raises DatabaseError."""
    file = file_of(address)
    if file is None:
        with closing(Postgresql(address, size=1)) as database:
            return database.version()
    if not file.exists():
        return None
    refuse_others(file)
    try:
        with closing(Connection(file, time.time)) as connection:
            connection.execute("BEGIN")  # another process may be making the tables
            return read_file_version(connection)
    except sqlite3.Error as error:
        raise DatabaseFileError(f"{file}: {error}") from error


def file_of(address: str) -> Path | None:
    """Return the file of SQLite's address; None for another one. Raises AddressError."""
    if not address.startswith("sqlite:"):
        return None
    name = address.removeprefix(_SQLITE)
    if not name or not address.startswith(_SQLITE):
        raise AddressError(
            "the address is none of a SQLite file",
            "write it as sqlite:///FILE; an absolute FILE has four slashes",
        )
    return Path(name)
