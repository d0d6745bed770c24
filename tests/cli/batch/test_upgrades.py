"""An upgrade of sealpipe in the middle of a batch: it goes on where an earlier version left it, and
ends each row once.

`schema-N/` is such a database, as it was written then (`upgrading.py`), and the world around it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from cli.batch.upgrading import (
    HERE,
    KEYS,
    VENDORS,
    UpgradeWorld,
    load_postgres,
    load_sqlite,
    read_world,
)
from cli.batch.world import DAY, BatchWorld
from sealpipe.batch.database.opening import open_database, prepare_tables
from sealpipe.batch.database.statements import SCHEMA_VERSION
from sealpipe.secret import Secret
from support.parts import Postgres, run_postgres
from support.pooler import pooled

SCHEMAS = sorted(HERE.glob("schema-*"))
SUBMITTING = ("waiting", "lost", "begun", "unclear", "refused", "new")


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


def test_every_schema_has_its_database() -> None:
    """`python -P tests/cli/batch/upgrading.py` writes one, before the first release with a new
    schema.
    """
    assert f"schema-{SCHEMA_VERSION}" in [schema.name for schema in SCHEMAS]
    for schema in SCHEMAS:
        version = schema.name.removeprefix("schema-")
        for script in ("sqlite.sql", "postgres.sql"):
            assert re.search(
                rf"sealpipe_meta\W+VALUES ?\('schema', ?'{version}'\)",
                (schema / script).read_text(),
            )


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_a_batch_in_sqlite_goes_on(schema: Path, tmp_path: Path) -> None:
    load_sqlite((schema / "sqlite.sql").read_text(), tmp_path / "state")
    world = UpgradeWorld(tmp_path)
    sent = read_world(world, schema / "sqlite.json")
    go_on(world, sent)
    world.close()


@pytest.mark.parametrize("way", [nullcontext, pooled], ids=["direct", "through a pooler"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_a_batch_in_postgresql_goes_on(
    schema: Path,
    way: Callable[[str], AbstractContextManager[str]],
    tmp_path: Path,
    postgres: Postgres,
) -> None:
    load_postgres((schema / "postgres.sql").read_text(), postgres)
    with way(postgres.address) as address:
        database = open_database(tmp_path, Secret(address))
        prepare_tables(database)
        database.close()
        world = UpgradeWorld(tmp_path, Secret(address))
        sent = read_world(world, schema / "postgres.json")
        go_on(world, sent)
        world.close()


def go_on(world: UpgradeWorld, sent: Counter[str]) -> None:
    """Run both batches on until every row has ended: one request or share each, each message once,
    each value once.
    """
    world.wait(3600)
    assert {row.is_gone for row in world.plan(world.vendors).rows} == {False}
    assert world.run(world.keys).counts == {"done": len(KEYS)}
    world.run(world.vendors)
    states = world.states(world.vendors)
    assert states == {
        **dict.fromkeys(VENDORS, "waiting"),
        "collected": "done",
        "submitted": "done",
        "cancelled": "cancelled",
        "unclear": "blocked",
    }
    assert "batch remind vendors unclear" in world.progress(world.vendors, "unclear").remedy
    assert sent + world.count_messages() == dict.fromkeys((*VENDORS, *KEYS), 1)
    for name in SUBMITTING:
        code = world.progress(world.vendors, name).short_code
        world.submit(code, {"Password": f"canary of {name}"})
    world.wait(DAY)
    world.run(world.vendors)
    assert world.states(world.vendors) == {
        **dict.fromkeys(VENDORS, "done"),
        "cancelled": "cancelled",
    }
    assert sorted(world.loft.puts) == sorted({*VENDORS} - {"cancelled"})
    assert world.loft.values["new"] == {"password": "canary of new"}
    assert (len(world.all_requests()), len(world.all_shares()), world.active_requests()) == (
        9,
        3,
        [],
    )
    assert sent + world.count_messages() == dict.fromkeys((*VENDORS, *KEYS), 1)
    check_sealing(world)


def check_sealing(world: UpgradeWorld) -> None:
    """Everything is sealed under a data key that the database has."""
    with closing(open_database(world.folder / "state", world.database)) as database:
        ids = {key_id for (key_id,) in database.read("SELECT id FROM sealpipe_data_keys")}
        for table in ("batches", "rows", "effects", "history"):
            blobs = database.read(f"SELECT blob FROM sealpipe_{table}")  # noqa: S608
            assert {blob[:8] for (blob,) in blobs} <= ids
    assert len(ids) == 2


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_a_rotated_key_takes_over_a_batch_of_every_schema(schema: Path, tmp_path: Path) -> None:
    """And opens what is submitted to the requests of the old one, without it."""
    load_sqlite((schema / "sqlite.sql").read_text(), tmp_path / "state")
    world = UpgradeWorld(tmp_path)
    read_world(world, schema / "sqlite.json")
    old, world.api_key = world.api_key, BatchWorld.make_key(world)
    for previous in (old, None):
        world.store.close()
        world.store = world.open_store(previous=previous)
        assert len(world.store.list_batches()) == 2
    code = world.progress(world.vendors, "waiting").short_code
    world.submit(code, {"Password": "canary of waiting"})
    world.wait(DAY)
    world.run(world.vendors, only=["waiting"])
    assert world.loft.values["waiting"] == {"password": "canary of waiting"}
    world.close()
