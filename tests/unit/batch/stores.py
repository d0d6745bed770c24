"""Stores in empty databases of both kinds, with the database at hand for whoever changes it by
hand.

As a program (`python -P stores.py NAME PLACE ...`) it does one of `WORK` in a process of its own.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealpipe.api.operation import Credential
from sealpipe.batch.database.interface import Database
from sealpipe.batch.database.opening import open_database, open_store, prepare_tables
from sealpipe.batch.database.records import SECOND, Batch, NewRow, Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import SealpipeError, StateError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from support.parts import Postgres

SERVICE = "https://api.example/v1"
MINUTE = 60 * SECOND
TABLES: Mapping[str, str] = {
    "batches": "SELECT * FROM sealpipe_batches",
    "rows": "SELECT * FROM sealpipe_rows",
    "effects": "SELECT * FROM sealpipe_effects",
    "history": "SELECT * FROM sealpipe_history",
}
"""The tables of batches, and what reads each; blobs are the last column."""


def make_credential(*, custody: bool = True) -> Credential:
    """A new credential."""
    sizes = (12, 32, 32) if custody else (12, 32)
    parts = [base64.urlsafe_b64encode(os.urandom(size)).decode().rstrip("=") for size in sizes]
    return Credential.parse(f"svc_sk_live_{'.'.join(parts)}")


class Place(ABC):
    """A database that is empty at first; stores of several workers may be open in it at once."""

    def __init__(self) -> None:
        self.credential = make_credential()
        self._opened: list[Database] = []
        self._stores: list[BatchStore] = []

    @abstractmethod
    def connect(self) -> Database: ...

    @property
    @abstractmethod
    def words(self) -> list[str]:
        """What a process of `stores.py` finds it by."""

    @abstractmethod
    def read_files(self) -> bytes:
        """Everything of ours in the database's files."""

    @property
    def api_key(self) -> str:
        """The credential as text."""
        secrets = [self.credential.auth_secret, self.credential.custody_secret]
        parts = [self.credential.key_id, *(secret.reveal() for secret in secrets if secret)]
        return f"svc_sk_live_{'.'.join(parts)}"

    def database(self) -> Database:
        """One more connection."""
        self._opened.append(self.connect())
        return self._opened[-1]

    def store(
        self,
        credential: Credential | None = None,
        service: str = SERVICE,
        previous: Credential | None = None,
    ) -> BatchStore:
        """One more worker's store."""
        prepare_tables(self.database())
        return self.open(credential, service, previous)

    def open(
        self,
        credential: Credential | None = None,
        service: str = SERVICE,
        previous: Credential | None = None,
    ) -> BatchStore:
        """The same in tables that were made before."""
        store = open_store(
            self.database(), credential or self.credential, service, previous=previous
        )
        self._stores.append(store)
        return store

    def change(self, statement: str, **parameters: object) -> None:
        """Change the database by hand."""
        with self.database().transaction() as transaction:
            transaction.run(statement, **parameters)

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that stands in the tables of batches."""
        database = self.database()
        return {name: sorted(database.read(statement)) for name, statement in TABLES.items()}

    def close(self) -> None:
        for store in self._stores:
            store.close()
        for database in self._opened:
            database.close()


class SqlitePlace(Place):
    """A folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def connect(self) -> Database:
        return open_database(self.folder)

    @property
    def words(self) -> list[str]:
        return ["sqlite", str(self.folder)]

    def read_files(self) -> bytes:
        return b"".join(file.read_bytes() for file in self.folder.iterdir())


class PostgresPlace(Place):
    """A server, from which the tables of the test before are removed."""

    _NAMES = ("meta", "batches", "data_keys", "rows", "effects", "history", "rate")

    def __init__(self, server: Postgres) -> None:
        super().__init__()
        self.server = server
        tables = ", ".join(f"sealpipe_{name}" for name in self._NAMES)
        self.change(f"DROP TABLE IF EXISTS {tables}")  # each statement has a connection of its own
        if self.database().read("SELECT 1 WHERE to_regclass('procrastinate_jobs') IS NOT NULL"):
            self.change("DELETE FROM procrastinate_jobs")
            self.change("DELETE FROM procrastinate_workers")

    def connect(self) -> Database:
        return open_database(Path("/nonexistent"), Secret(self.server.address))

    @property
    def words(self) -> list[str]:
        return ["postgres", self.server.address]

    def read_files(self) -> bytes:
        database = self.database()
        database.read("CHECKPOINT")
        files = [
            database.read(f"SELECT pg_relation_filepath('sealpipe_{name}')")[0][0]
            for name in self._NAMES
        ]
        return b"".join((self.server.folder / "data" / file).read_bytes() for file in files)


def add_rows(store: BatchStore, count: int, name: str = "vendors") -> Batch:
    """A batch with rows that are due, each a second longer than the one before."""
    batch = store.add_batch(name, {"digest": "abc"})
    now = store.now()
    store.add_rows(
        batch,
        [
            NewRow(f"row {number}", "new", now - number * SECOND, {"n": number})
            for number in range(count)
        ],
    )
    return batch


def take(store: BatchStore, batch: Batch) -> Row:
    """The one row that is due the longest."""
    row = store.take_due([batch])
    assert row is not None
    return row


def take_many(store: BatchStore, batch: Batch) -> list[Row]:
    """Every row that is due, and that nobody has."""
    rows = []
    while (row := store.take_due([batch])) is not None:
        rows.append(row)
    return rows


def be_thought_dead(place: Place, store: BatchStore, batch: Batch) -> None:
    """Let the process of every store stand still for too long, as this one finds."""
    assert isinstance(place, PostgresPlace), "on SQLite, a process that stands still has the lock"
    place.change("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    store.reconcile([batch])


def run_at_once(*jobs: Callable[[], object]) -> None:
    """Run all at the same moment, each in a thread; an error of one is raised."""
    barrier, errors = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], object]) -> None:
        barrier.wait()
        try:
            job()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def take_all(store: BatchStore, batch: Batch) -> list[str]:
    """Take row after row until none is due, begin its effect, save it; the keys of the effects
    that were ours.
    """
    ours = []
    while (row := store.take_due([batch])) is not None:
        effect = store.effects.begin(row, "1/create", {})
        if effect is not None:
            ours.append(str(row.key))
            store.effects.finish(effect, "done", {})
        store.save(
            row, state="done", due_at=None, content=row.content or {}, events=[{"what": "done"}]
        )
    return ours


def race_for_effect(store: BatchStore, batch: Batch) -> list[str]:
    """Begin the effect of every row, without taking it; the keys of those that were ours."""
    rows = list(store.list_rows(batch, contents=True))
    return [str(row.key) for row in rows if store.effects.begin(row, "1/create", {}) is not None]


def name_state(version: int) -> str:
    """A state of its own for each version of a row: a word, as every state is."""
    return "s" + str(version).translate(str.maketrans("0123456789", "abcdefghij"))


def write_on(store: BatchStore, batch: Batch) -> list[str]:
    """Write to one row after the other, for ever; a line is printed for each change that is on
    disk.
    """
    while True:
        try:
            row = store.take_due([batch])
            if row is None:
                store.reconcile([batch])
                continue
            name, content = f"{row.version}/step", {"version": row.version}
            effect = store.effects.begin(row, name, content) or store.effects.find(row, name)
            if effect is not None and effect.state == "sending":
                store.effects.finish(effect, "done", content)
            state, events = name_state(row.version), [{"v": row.version}]
            store.save(row, state=state, due_at=row.due_at, content=content, events=events)
            os.write(1, f"{row.id} {row.version + 1}\n".encode())
        except SealpipeError as error:
            os.write(2, f"{error}\n".encode())
            time.sleep(0.1)


WORK: Mapping[str, Callable[[BatchStore, Batch], list[str]]] = {
    "take": take_all,
    "race": race_for_effect,
    "write": write_on,
}


def start_worker(work: str, place: Place) -> subprocess.Popen[str]:
    """Start a process that does this work as soon as a line is written to it.

    It says when it is ready.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, work, *place.words, place.api_key],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@contextmanager
def waiting_for_lock(store: BatchStore) -> Iterator[None]:
    """Be the only runner of an embedded database, once no other process is."""
    while True:
        with ExitStack() as stack:
            try:
                stack.enter_context(store.lock_runner())
            except StateError:
                time.sleep(0.01)
                continue
            yield
            return


def _main() -> None:
    work, kind, where, credential = sys.argv[1:]
    database = (
        open_database(Path(where))
        if kind == "sqlite"
        else open_database(Path("/nonexistent"), Secret(where))
    )
    store = open_store(database, Credential.parse(credential), SERVICE)
    batch = store.find_batch("vendors")
    assert batch is not None
    os.write(1, b"ready\n")
    os.read(0, 1)
    with waiting_for_lock(store):
        ours = WORK[work](store, batch)
    for key in ours:
        os.write(1, f"{key}\n".encode())
    store.close()


if __name__ == "__main__":
    _main()
