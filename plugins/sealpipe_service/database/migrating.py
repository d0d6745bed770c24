"""Makes and upgrades the tables by Alembic, for those who operate a server: nobody who serves or
rehearses waits for this import.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy.pool import NullPool

from . import versions
from .access import DatabaseError, SchemaError, UnavailableError, number_of
from .opening import describe, file_of, read_version
from .planned import KNOWN, make_functions
from .postgresql import explain, read_address
from .sqlite import Sqlite

WAIT_SECONDS = 60
"""How long an upgrade waits for another one, and for tables that are in use."""
_BEGIN_ON_SQLITE = "BEGIN IMMEDIATE"
_BEGIN_ON_POSTGRESQL = (
    f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'; "
    f"SELECT pg_advisory_xact_lock({number_of('upgrade')})"
)


def make(address: str) -> None:
    """Make the tables in a database that has none. Raises DatabaseError."""
    if read_version(address) is not None:
        raise SchemaError(f"the {describe(address)} has tables of the service already")
    upgrade(address)


def upgrade(address: str) -> tuple[str | None, str]:
    """Upgrade the tables to this program's version, or make them: all or nothing.

    Return the versions before (None: no tables) and after. Raises DatabaseError. Of two that run at
    once one waits.
    """
    before, where = read_version(address), f"the {describe(address)}"
    file = file_of(address)
    refusal = versions.refuse(before, where)
    if refusal and before is not None and before > versions.VERSION:
        raise refusal
    if before == versions.UNKNOWN:
        raise SchemaError(f"{where} is older than what can be upgraded", "begin with a new one")
    if before is None and file is not None:
        Sqlite(file).close()
    elif before != versions.VERSION or file is None:  # it may lack this program's functions
        migrate(address)
    return before, versions.VERSION


def migrate(address: str) -> None:
    """Let Alembic bring a database to the newest version."""
    with _begin(address) as connection:
        config = Config()
        config.set_main_option("script_location", f"{__package__}:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if connection.dialect.name == "postgresql":
            known = {row.proname for row in connection.exec_driver_sql(KNOWN)}
            for each in make_functions().values():
                if each.name not in known:  # who finds all of them there needs no right to make any
                    connection.exec_driver_sql(each.definition)


@contextmanager
def _begin(address: str) -> Iterator[sqlalchemy.Connection]:
    """A transaction in which no other upgrade runs."""
    file = file_of(address)
    if file is None:
        begin, kind = _BEGIN_ON_POSTGRESQL, "postgresql+psycopg://"
        settings = read_address(address)

        def connect() -> object:
            return psycopg.connect(prepare_threshold=None, **settings)
    else:
        begin, kind = _BEGIN_ON_SQLITE, "sqlite://"

        def connect() -> object:
            return sqlite3.connect(file, isolation_level=None, timeout=WAIT_SECONDS)

    engine = sqlalchemy.create_engine(kind, creator=connect, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(begin)
            yield connection
    except (psycopg.Error, sqlite3.Error, sqlalchemy.exc.DBAPIError) as error:
        failure = _explain(error, describe(address))
    else:
        return
    raise failure


def _explain(error: Exception, where: str) -> DatabaseError:
    cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    if isinstance(cause, psycopg.errors.DuplicateTable | psycopg.errors.DuplicateObject):
        return SchemaError(f"the {where} has other tables")
    if isinstance(cause, psycopg.Error):
        return explain(cause, where)
    return UnavailableError(f"the {where} cannot be upgraded: {cause}")
