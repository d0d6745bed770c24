"""Machines that run a batch as processes of their own, to be killed at any moment; and scenarios
for them.

They are forked from a process that has imported everything and has no threads, so a machine is
there at once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import psycopg

from cli.batch.simulation import FILE
from cli.batch.world import DAY
from sealpipe import Client
from sealpipe.api.operation import Credential
from sealpipe.batch.database import postgres_queue
from sealpipe.batch.database.opening import open_database, open_store, prepare_tables
from sealpipe.batch.database.records import Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine import loop, worker
from sealpipe.batch.engine.session import run_batch
from sealpipe.batch.engine.sync import sync
from sealpipe.batch.file.reading import read_definition
from sealpipe.batch.steps.content import RowContent
from sealpipe.client_base import connect
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.people import LinkRefusedError, Submitter
from sealpipe_rehearsal.server import start
from support.parts import Postgres

LONGEST = 0.5
"""Seconds after which a machine is killed at the latest."""
TURNS = 60
"""Turns of two seconds that undisturbed workers get at the most; they need two or three."""
DEAD = 600.0
"""Seconds after which a machine that was killed is dead for all others."""


class Machines:
    """The service in a process of its own, a database for all scenarios or one for each, and an
    account.
    """

    def __init__(
        self,
        folder: Path,
        server: Postgres | None,
        *,
        is_worker: bool = False,
        kills_server: bool = False,
    ) -> None:
        self.folder = folder
        self.server = server
        self.is_worker = is_worker
        self.kills_server = kills_server
        self.elapsed = 0.0
        self._service = 0

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        self._service = os.fork()
        if self._service == 0:
            os.close(reading)
            with start() as running:
                os.write(
                    writing,
                    f"{running.base_url} {running.link_base_url} {running.origin}\n".encode(),
                )
                signal.pause()
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            self.base_url, self.link_base_url, self.origin = told.readline().split()
        control_client.set_account(self.origin, "default", requests_per_minute=1_000_000)
        self.api_key = control_client.register_key(self.origin, name="batch").reveal()
        if self.server is not None:
            database = open_database(self.folder, Secret(self.server.address))
            prepare_tables(database)
            database.close()
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._service, signal.SIGKILL)
        os.waitpid(self._service, 0)

    def wait(self, seconds: float) -> None:
        """Let time pass for the service and the databases."""
        self.elapsed += seconds
        if self.server is not None:
            with psycopg.connect(self.server.address, autocommit=True) as connection:
                connection.execute(
                    "UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - "
                    "%s * interval '1 second'",
                    [seconds],
                )
        control_client.call_control_api(self.origin, "POST", "/clock", {"advance_seconds": seconds})

    def open_store(self, folder: Path) -> BatchStore:
        address = None if self.server is None else Secret(self.server.address)
        store = open_store(
            open_database(folder, address), Credential.parse(self.api_key), self.base_url
        )
        store.clock_offset = round(self.elapsed * 1_000_000)
        return store

    def session(self, loft: Path) -> Session:
        registry = Registry(environ={"LOFT": str(loft)}, built_in=(*BUILT_IN, "cli.batch.pigeons"))
        return connect(
            Session(
                Credential.parse(self.api_key), self.base_url, self.link_base_url, lambda: registry
            )
        )

    def fork(self, work: Callable[[], object]) -> int:
        """Do work in a process of its own; returns its id."""
        process = os.fork()
        if process:
            return process
        try:
            with open(os.devnull, "w") as null:  # noqa: PTH123 - a descriptor for stderr
                os.dup2(null.fileno(), sys.stderr.fileno())
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - it must not go on as its parent
            os._exit(1)


class Scenario:
    """One batch, from its file to its end."""

    def __init__(self, machines: Machines, number: int, rows: int, chance: random.Random) -> None:
        self._machines, self._chance = machines, chance
        self._folder = machines.folder / str(number)
        self._loft = self._folder / "loft"
        self._loft.mkdir(parents=True)
        self._names = [f"n{number}-{each}" for each in range(rows)]
        lines = [f"{name},{name}.example" for name in self._names]
        (self._folder / "rows.csv").write_text("\n".join(["name,to", *lines]) + "\n")
        self._path = self._folder / "batch.toml"
        self._path.write_text(
            FILE.replace("simulated", f"batch-{number}").replace('"3d", "7d"', '"3d"')
        )

    def play(self, figures: Counter[str]) -> Iterator[str]:
        """Kill, and kill again, and let it end. Yields what is wrong."""
        self._kill(figures, self._chance.randint(2, 5))
        yield from self._end()
        yield from self._check(figures, reminders=0, used=set())
        submitting = {name for name in self._names if self._chance.random() < 0.5}
        submitter = Submitter(self._machines.origin)
        for to, _, code, _ in self._read_messages():
            name = to.removesuffix(".example")
            if name in submitting:
                try:
                    submitter.submit(
                        f"{self._machines.link_base_url}/r/{code}", {"Password": f"canary-{name}"}
                    )
                except LinkRefusedError:
                    yield f"the link of {name} does not work"
        used = submitting & {to.removesuffix(".example") for to, *_ in self._read_messages()}
        self._machines.wait(4 * DAY)
        self._kill(figures, self._chance.randint(2, 5))
        yield from self._end()
        self._machines.wait(2 * 3600)
        yield from self._end()
        yield from self._check(figures, reminders=1, used=used)
        store = self._machines.open_store(self._folder / "state")
        # A worker takes every batch: it would look at all that were played.
        store.purge_batch(self._find_batch(store))
        store.close()

    def _work(self) -> None:
        machines, store = self._machines, self._machines.open_store(self._folder / "state")
        definition = read_definition(self._path)
        if not machines.is_worker or machines.server is None:
            run_batch(machines.session(self._loft), store, definition)
            return
        sync(store, definition)
        # Whoever waits for a test does not wait half a minute for each worker that is dead.
        loop.TICK_SECONDS = postgres_queue.HEARTBEAT_SECONDS = 0.5
        postgres_queue.STALLED_SECONDS = 2.0
        worker.Worker(machines.session(self._loft), store, threads=3).run(2.0)

    def _kill(self, figures: Counter[str], times: int) -> None:
        for _ in range(times):
            process = self._machines.fork(self._work)
            time.sleep(self._chance.uniform(0.0, LONGEST * (2 if self._machines.is_worker else 1)))
            server = self._machines.server
            if server is not None and self._machines.kills_server and self._chance.random() < 0.1:
                server.kill()
                server.start()
                figures["kills of PostgreSQL"] += 1
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            figures["kills"] += 1
            figures["killed while it worked"] += os.WIFSIGNALED(status)
            self._machines.wait(DEAD)

    def _end(self) -> Iterator[str]:
        """One machine that nobody disturbs; workers get as many turns as they need."""
        for _ in range(TURNS if self._machines.is_worker else 1):
            process = self._machines.fork(self._work)
            _, status = os.waitpid(process, 0)
            if os.WEXITSTATUS(status) != 0:
                yield f"a run that nobody disturbed ended with {os.WEXITSTATUS(status)}"
            store = self._machines.open_store(self._folder / "state")
            due = store.find_next_due(self._find_batch(store))
            now = store.now()
            store.close()
            if due is None or due > now:
                return

    def _find_batch(self, store: BatchStore):  # type: ignore[no-untyped-def]
        batch = store.find_batch(read_definition(self._path).name)
        assert batch is not None
        return batch

    def _read_messages(self) -> list[list[str]]:
        path = self._loft / "messages"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _check(self, figures: Counter[str], reminders: int, used: set[str]) -> Iterator[str]:
        store = self._machines.open_store(self._folder / "state")
        rows: dict[str, Row] = {
            row.key or "": row for row in store.list_rows(self._find_batch(store), contents=True)
        }
        store.close()
        messages = Counter(to.removesuffix(".example") for to, *_ in self._read_messages())
        puts = Counter(
            (self._loft / "puts").read_text().split() if (self._loft / "puts").exists() else []
        )
        machines = self._machines
        with Client(
            api_key=machines.api_key,
            base_url=machines.base_url,
            link_base_url=machines.link_base_url,
        ) as client:
            live = {info.short_code for info in client.iter_requests()}
        for name in self._names:
            row, progress = rows[name], RowContent.load(rows[name]).progress
            figures[f"rows {row.state}"] += reminders
            if name in used:
                if row.state != "done" or puts[name] != 1:
                    yield f"{name} is {row.state}, stored {puts[name]} times: {progress.problem}"
                continue
            due = 1 + reminders
            if row.state == "blocked" and progress.unclear:
                if messages[name] > due:
                    yield f"{name} got {messages[name]} messages, and is blocked"
            elif row.state != "waiting" or messages[name] != due:
                yield f"{name} is {row.state} with {messages[name]} messages: {progress.problem}"
            if progress.short_code not in live or puts[name]:
                yield f"{name} has no live request, or something is stored"
        codes = {RowContent.load(row).progress.short_code for row in rows.values()}
        ours = {code for code in live if code in codes}
        expected = len(self._names) - len(used)
        if len(ours) != expected or len({code for _, _, code, _ in self._read_messages()} - codes):
            yield f"{len(ours)} live requests, where {expected} should be"
