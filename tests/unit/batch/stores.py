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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealpipe.api.operation import Credential
from sealpipe.batch.database.interface import Database, prepare_schema
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.batch.database.records import SECOND, Batch, NewRow, Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import SealpipeError
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
        prepare_schema(self.database())
        return self.open(credential, service, previous)

    def open(
        self,
        credential: Credential | None = None,
        service: str = SERVICE,
        previous: Credential | None = None,
    ) -> BatchStore:
        """The same in tables that were made before."""
        return open_store(
            self.database(), credential or self.credential, service, previous=previous
        )

    def change(self, statement: str, **parameters: object) -> None:
        """Change the database by hand."""
        with self.database().transaction() as transaction:
            transaction.run(statement, **parameters)

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that stands in the tables of batches."""
        database = self.database()
        return {name: sorted(database.read(statement)) for name, statement in TABLES.items()}

    def close(self) -> None:
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


def claim(store: BatchStore, batch: Batch, holder: str = "worker", lease: int = MINUTE) -> Row:
    """The one row that is due the longest."""
    (row,) = store.claim_due(batch, holder, lease)
    return row


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


def take_all(store: BatchStore, batch: Batch, holder: str) -> list[str]:
    """Claim row after row until none is due, begin its effect, save it; the keys of the effects
    that were ours.
    """
    ours = []
    while rows := store.claim_due(batch, holder, MINUTE, limit=2):
        for row in rows:
            effect = store.effects.begin(row, "1/create", {})
            if effect is not None:
                ours.append(str(row.key))
                store.effects.finish(effect, "done", {})
            store.save(
                row, state="done", due_at=None, content=row.content or {}, events=[{"what": "done"}]
            )
    return ours


def race_for_effect(store: BatchStore, batch: Batch, holder: str) -> list[str]:
    """Begin the effect of every row that nobody holds, without claiming it; the keys of those that
    were ours.
    """
    del holder
    rows = list(store.list_rows(batch, contents=True))
    return [str(row.key) for row in rows if store.effects.begin(row, "1/create", {}) is not None]


def name_state(version: int) -> str:
    """A state of its own for each version of a row: a word, as every state is."""
    return "s" + str(version).translate(str.maketrans("0123456789", "abcdefghij"))


def write_on(store: BatchStore, batch: Batch, holder: str) -> list[str]:
    """Write to one row after the other, for ever; a line is printed for each change that is on
    disk.
    """
    while True:
        try:
            for row in store.claim_due(batch, holder, SECOND, limit=5):
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


WORK: Mapping[str, Callable[[BatchStore, Batch, str], list[str]]] = {
    "take": take_all,
    "race": race_for_effect,
    "write": write_on,
}


def start_worker(work: str, place: Place, number: int) -> subprocess.Popen[str]:
    """Start a process that does this work as soon as a line is written to it.

    It says when it is ready.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, work, *place.words, place.api_key, f"process {number}"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _main() -> None:
    work, kind, where, credential, holder = sys.argv[1:]
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
    for key in WORK[work](store, batch, holder):
        os.write(1, f"{key}\n".encode())
    store.close()


if __name__ == "__main__":
    _main()
