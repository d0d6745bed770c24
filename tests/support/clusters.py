"""PostgreSQL for tests of the store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy.dialects import postgresql

from sealpipe_service.database.compiling import compile_schema
from sealpipe_service.database.planned import make_functions
from sealpipe_service.database.versions import VERSION
from support.parts import run_postgres

# Before PostgreSQL's own function of this name, by the role's search_path; until it is told a
# moment it tells the same.
_CLOCK = """
CREATE SCHEMA clocks;
CREATE TABLE clocks.moment (at) AS VALUES (CAST(NULL AS DOUBLE PRECISION));
CREATE FUNCTION clocks.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT coalesce(to_timestamp(at), pg_catalog.clock_timestamp()) FROM clocks.moment';
"""


def add_clock(address: str) -> None:
    """Give a database the clock that tests move."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER ROLE tests SET search_path = public, clocks, pg_catalog")
        connection.execute(_CLOCK)


class Cluster:
    """A PostgreSQL on which each test has a database of its own, with a clock that it moves."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._numbers = itertools.count()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE empty")
        add_clock(self._at("empty"))
        self._copy("empty", "made")
        with psycopg.connect(self._at("made"), autocommit=True) as connection:
            for text in compile_schema(postgresql.dialect()):
                connection.execute(text.encode())
            for each in make_functions().values():
                connection.execute(each.definition.encode())
            connection.execute("INSERT INTO clock VALUES (1, 0)")
            connection.execute("INSERT INTO service_version VALUES (%s)", [VERSION])

    def _at(self, name: str) -> str:
        return self._address.replace("/postgres?", f"/{name}?")

    def _copy(self, template: str, name: str) -> str:
        text = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(text)
        return self._at(name)

    def address(self, template: str = "made") -> str:
        """A database with the tables; one without them is `empty`."""
        return self._copy(template, f"test_{next(self._numbers)}")


@contextmanager
def run_cluster() -> Iterator[Cluster]:
    with run_postgres() as server:
        yield Cluster(server.address)
