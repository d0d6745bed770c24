"""Makes and upgrades the tables of a database."""

from __future__ import annotations

from .access import SchemaError
from .opening import describe, find_file
from .sqlite import VERSION, Sqlite


def make(url: str) -> None:
    """Make the tables in an empty database. Raises DatabaseError, also if there are some."""
    file = find_file(url)
    if file.exists():
        raise SchemaError(f"the {describe(url)} has tables already")
    Sqlite(file).close()


def upgrade(url: str) -> tuple[str | None, str]:
    """Upgrade the tables; return the versions before and after. Raises DatabaseError."""
    Sqlite(find_file(url)).close()
    return str(VERSION), str(VERSION)
