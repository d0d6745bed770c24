"""What seals a batch anew is killed before each of its statements: the database is as it was, or
as it is to be, and all of it opens.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cli.batch.killed_sealing import BASE_URL, NEW, OWN, WORK, connect, dump, find
from cli.batch.upgrading import HERE, VENDORS, load_postgres, load_sqlite
from sealpipe.batch.database.interface import prepare_schema
from sealpipe.batch.database.opening import open_store
from sealpipe.batch.database.sealing import DataKey, KeyWrapper
from sealpipe.batch.database.statements import ADD_DATA_KEY, SCHEMA_VERSION
from sealpipe.batch.database.store import BatchStore
from support.parts import Postgres, run_postgres

SCHEMA = {"rekey": 2, "rotate": 2, "upgrade": 1, "upgrade-batch": 1}
STATEMENTS = {"rekey": 50, "rotate": 15, "upgrade": 10, "upgrade-batch": 50}
"""How many there are at least."""


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.mark.parametrize("name", WORK)
def test_a_kill_in_sqlite_leaves_the_old_or_the_new(name: str, tmp_path: Path) -> None:
    load_sqlite((HERE / f"schema-{SCHEMA[name]}/sqlite.sql").read_text(), tmp_path / "state")
    check_kills(name, "sqlite", str(tmp_path / "state"))


@pytest.mark.parametrize("name", WORK)
def test_a_kill_in_postgresql_leaves_the_old_or_the_new(name: str, postgres: Postgres) -> None:
    load_postgres((HERE / f"schema-{SCHEMA[name]}/postgres.sql").read_text(), postgres)
    check_kills(name, "postgres", postgres.address)


def test_a_dump_of_schema_1_over_newer_tables_is_upgraded(tmp_path: Path) -> None:
    """It removes no data keys: those of a later credential were left there."""
    load_sqlite((HERE / "schema-1/sqlite.sql").read_text(), tmp_path / "state")
    with closing(connect("sqlite", str(tmp_path / "state"))) as database:
        prepare_schema(database)
        ((batch,),) = database.read("SELECT id FROM sealpipe_batches ORDER BY created_at LIMIT 1")
        key = DataKey.create(batch, database.read_clock())
        values = {"batch": batch, "id": key.id, "created_at": key.created_at}
        wrapped = KeyWrapper(NEW, batch).wrap(key)
        with database.transaction() as transaction:
            transaction.run(ADD_DATA_KEY, **values, key_id=NEW.key_id, wrapped=wrapped)
        store = open_store(database, OWN, BASE_URL)
        assert len(store.list_batches()) == 2
        assert all(read_all(store))


def check_kills(name: str, kind: str, where: str) -> None:
    if name != "upgrade":
        with closing(connect(kind, where)) as database:
            prepare_schema(database)
    before = dump(kind, where)
    script = Path(__file__).with_name("killed_sealing.py")
    words = [sys.executable, "-P", str(script), name, kind, where]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    told = ended.stdout.split()
    assert told == sorted(told, key=("old", "new", "done").index)
    assert told.count("old") >= STATEMENTS[name]
    assert told[-1] == "done"
    after = dump(kind, where)
    assert after != before
    assert ("schema", str(SCHEMA_VERSION)) in after["sealpipe_meta"]
    with closing(connect(kind, where)) as database:
        store = open_store(database, WORK[name][1], BASE_URL)
        batch, found = find(store), read_all(store)
    assert found == [
        sum(row[0] == batch.id for row in before[f"sealpipe_{table}"])
        for table in ("rows", "effects", "history")
    ]


def read_all(store: BatchStore) -> list[int]:
    """Open all that a batch holds; how many rows, effects and events that is."""
    rows = list(store.list_rows(find(store), contents=True))
    assert {row.key for row in rows} == set(VENDORS)
    effects = [effect for row in rows for effect in store.effects.list(row)]
    events = [event for row in rows for event in store.read_history(row)]
    return [len(rows), len(effects), len(events)]
