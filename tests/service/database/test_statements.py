"""The statements stand once, in SQLAlchemy Core: what SQLite gets is generated from them, and an
index answers each.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy.dialects import postgresql, sqlite

from sealpipe_service.database import compiling, sqlite_text
from sealpipe_service.database.planned import make_functions
from sealpipe_service.database.statements import make
from support.parts import run_postgres

WHOLE_TABLE = {
    "accounts": set(),
    "keys": {"keys", "compromised"},
    "webhooks": {"webhooks", "mail"},
    "service_version": {"version"},
    "deliveries": {
        *("deliveries", "lease_delivery", "next_delivery", "queue", "remove_deliveries"),
    },
    "rates": {"drop_buckets"},
}
"""Tables that some statements read whole: who lists everything, and what is small or rare."""


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    """A database with the tables."""
    connection = sqlite3.connect(":memory:")
    connection.create_function("clock_timestamp", 0, lambda: 0.0)
    for text in sqlite_text.SCHEMA:
        connection.execute(text)
    yield connection
    connection.close()


def test_the_text_for_sqlite_is_what_the_statements_compile_to() -> None:
    dialect = sqlite.dialect(paramstyle="named")
    fresh = compiling.compile_statements(make(sqlite.insert), dialect)
    assert dict(sqlite_text.STATEMENTS) == fresh, "python -m sealpipe_service.database.compiling"
    assert list(sqlite_text.SCHEMA) == compiling.compile_schema(dialect)


def test_both_databases_have_the_same_statements_with_the_same_values() -> None:
    dialect = postgresql.dialect(paramstyle="named")
    texts = compiling.compile_statements(make(postgresql.insert), dialect)
    assert texts.keys() == sqlite_text.STATEMENTS.keys()
    for name, text in texts.items():
        assert values_in(text) == values_in(sqlite_text.STATEMENTS[name]), name


def values_in(text: str) -> set[str]:
    return set(re.findall(r"(?<!:):([a-z_]\w*)", text))


@pytest.mark.parametrize("name", sqlite_text.STATEMENTS)
def test_a_statement_reads_no_whole_table(name: str, empty: sqlite3.Connection) -> None:
    text = sqlite_text.STATEMENTS[name]
    plan = empty.execute(f"EXPLAIN QUERY PLAN {text}", dict.fromkeys(values_in(text), 1)).fetchall()
    scanned = {
        words[1]
        for *_, detail in plan
        if (words := detail.split())[0] == "SCAN" and "INDEX" not in words
    }
    allowed = {table for table, names in WHOLE_TABLE.items() if name in names}
    assert scanned - {"clock", "CONSTANT", "waiting"} <= allowed, plan


def test_who_has_no_token_makes_it_read_nothing_of_a_ciphertext(empty: sqlite3.Connection) -> None:
    """Nor read through it, as SQLite does to a column that comes after."""
    read: list[tuple[str, str]] = []

    def note(_: int, table: str, column: str, *__: object) -> int:
        read.append((table, column))
        return sqlite3.SQLITE_OK

    empty.set_authorizer(note)
    empty.execute(f"EXPLAIN {sqlite_text.STATEMENTS['share_at_link']}", {"code": ""})
    empty.set_authorizer(None)
    assert ("shares", "access_token_sha256") in read
    assert ("shares", "data") not in read
    assert empty.execute("SELECT * FROM shares").description[-1][0] == "data"


def test_the_service_cannot_move_its_clock() -> None:
    writes = re.compile(r"\b(?:UPDATE|INTO|DELETE FROM) clock\b")
    assert [name for name, text in sqlite_text.STATEMENTS.items() if writes.search(text)] == [
        "start_clock"
    ]
    assert "DO NOTHING" in sqlite_text.STATEMENTS["start_clock"]


def test_who_uses_sqlite_does_not_wait_for_sqlalchemy() -> None:
    program = (
        "import sys; from sealpipe_service.database.sqlite import Sqlite; "
        "from sealpipe_service.database.decisions import Store; Store(Sqlite()).sweep(); "
        "print('sqlalchemy' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


def test_postgresql_prepares_every_statement() -> None:
    dialect = postgresql.dialect(paramstyle="pyformat")
    texts = compiling.compile_statements(make(postgresql.insert), dialect)
    with run_postgres() as server, psycopg.connect(server.address, autocommit=True) as connection:
        for text in compiling.compile_schema(dialect):
            connection.execute(text.encode())
        for name, text in texts.items():
            place = {value: f"${at}" for at, value in enumerate(values_of(text), 1)}
            numbered = text % {value: place[value] for value in place}
            connection.execute(f'PREPARE "{name}" AS {numbered}'.encode())
        for name, each in make_functions().items():
            connection.execute(each.definition.encode())
            values = values_of(texts[name])
            place = {value: f"${at}" for at, value in enumerate(values, 1)}
            call = each.call("public").decode() % {value: place[value] for value in place}
            connection.execute(f'PREPARE "call {name}" AS {call}'.encode())
            returned = returned_by(connection, name)
            assert not returned or returned_by(connection, f"call {name}") == returned


def returned_by(connection: psycopg.Connection, prepared: str) -> list[tuple[bytes | None, int]]:
    result = connection.pgconn.describe_prepared(prepared.encode())
    return [(result.fname(at), result.ftype(at)) for at in range(result.nfields)]


def values_of(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
