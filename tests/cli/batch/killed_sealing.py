"""Seals a batch of `schema-N/` anew, killed before each statement in turn, until it is done.

    python -P killed_sealing.py WORK KIND WHERE

Prints a line for each kill: `old` if the database is as it was, else `new`; and `done` last.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sealpipe.api.operation import Credential
from sealpipe.batch.database.interface import Database, prepare_schema
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.batch.database.records import Batch
from sealpipe.batch.database.sqlite import SqliteDatabase
from sealpipe.batch.database.store import BatchStore
from sealpipe.minting import mint
from sealpipe.secret import Secret

NAME = "vendors"
BASE_URL = "http://127.0.0.1:9/v1"  # of `world.py`, which would import the service
TABLES = ("meta", "batches", "data_keys", "rows", "effects", "history")


def make_credential(seed: int) -> Credential:
    """16 is that of every `schema-N`."""
    minted = mint("svc", token_bytes=random.Random(seed).randbytes)  # noqa: S311 - for tests
    return Credential.parse(minted.credential)


OWN, NEW = make_credential(16), make_credential(17)


def rekey(database: Database) -> None:
    store = open_store(database, OWN, BASE_URL)
    store.rekey(find(store))


def rotate(database: Database) -> None:
    find(open_store(database, NEW, BASE_URL, previous=OWN))


def upgrade(database: Database) -> None:
    prepare_schema(database)


def upgrade_batch(database: Database) -> None:
    find(open_store(database, OWN, BASE_URL))


WORK: Mapping[str, tuple[Callable[[Database], None], Credential]] = {
    "rekey": (rekey, OWN),
    "rotate": (rotate, NEW),
    "upgrade": (upgrade, OWN),
    "upgrade-batch": (upgrade_batch, OWN),
}
"""What is done, and the credential that opens the batch afterwards."""


def find(store: BatchStore) -> Batch:
    batch = store.find_batch(NAME)
    assert batch is not None
    return batch


def connect(kind: str, where: str) -> Database:
    address = Secret(where) if kind == "postgres" else None
    return open_database(Path(where), address)


def dump(kind: str, where: str) -> dict[str, Any]:
    """Everything in the tables, as it stands there."""
    database = connect(kind, where)
    lookup = (
        "SELECT 1 FROM sqlite_master WHERE name = :name"
        if kind == "sqlite"
        else "SELECT 1 WHERE to_regclass(:name) IS NOT NULL"
    )
    names = [f"sealpipe_{name}" for name in TABLES]
    found = {
        name: sorted(database.read(f"SELECT * FROM {name}"))  # noqa: S608 - a name from above
        for name in names
        if database.read(lookup, name=name)
    }
    database.close()
    return found


def work_and_die(name: str, kind: str, where: str, at: int) -> None:
    """Do the work, and be killed before the statement of this number."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(owner: Any, statement: Any, parameters: Any = None, **options: Any) -> Any:
            step()
            if isinstance(parameters, list):  # many sets, of one statement
                parameters = count_each(parameters)
            return function(owner, statement, parameters, **options)

        return run

    def count_each(rows: Iterable[Any]) -> Iterator[Any]:
        for row in rows:
            yield row
            step()

    if kind == "sqlite":
        patched: list[tuple[Any, tuple[str, ...]]] = [(SqliteDatabase, ("run", "run_many"))]
    else:
        import psycopg  # the tests of SQLite need none

        patched = [(psycopg.Connection, ("execute",)), (psycopg.Cursor, ("executemany",))]
    database = connect(kind, where)
    for owner, methods in patched:
        for method in methods:
            setattr(owner, method, counted(getattr(owner, method)))
    WORK[name][0](database)
    database.close()


def main() -> None:
    name, kind, where = sys.argv[1:]
    before = dump(kind, where)
    for at in range(1, 1000):
        child = os.fork()
        if not child:
            work_and_die(name, kind, where, at)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0
            print("done", flush=True)
            return
        print("old" if dump(kind, where) == before else "new", flush=True)


if __name__ == "__main__":
    main()
