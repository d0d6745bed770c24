"""Vendors over thirty days, with runs as a scheduler makes them, and what becomes of them as a
small model says.

The model knows nothing of the engine: from what each vendor does and when runs come it computes how
the row ends, how many messages the vendor got, and what is stored.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cli.batch.world import DAY, BatchWorld
from sealpipe.batch.database.opening import open_database, prepare_tables
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.run import RunResult
from sealpipe.batch.engine.worker import Worker
from sealpipe.secret import Secret
from support.faked_time import move_clock

FILE = """
name = "simulated"
kind = "request"
rows = "rows.csv"
key = "name"

[request]
ask = ["Password"]
title = "Access"
expires-in = "30d"
max-submissions = 1
send = ["pigeon:{to}"]

[remind]
after = ["3d", "7d"]
before-expiry = "1d"

[collect]
to = ["nest:{name}#password=Password"]
after = "expire"
"""
HOUR = 3600.0
REMINDERS = (3.0, 7.0, 29.0)
EXPIRY = 30.0


@dataclass(frozen=True)
class Vendor:
    """What a vendor does: submits on a day, or never; `junk` cannot be opened."""

    name: str
    day: float | None
    junk: bool = False


class End(NamedTuple):
    """How a row ends: its state, the messages that its vendor got, and whether something is
    stored.
    """

    state: str
    messages: int
    stored: bool


def draw_vendors(number: int, seed: int) -> list[Vendor]:
    """Half of them submit early, some late, some never, and a few send junk."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    return [
        Vendor(f"v{each:04}", _draw_day(chance), chance.random() < 0.03) for each in range(number)
    ]


def _draw_day(chance: random.Random) -> float | None:
    kind = chance.random()
    if kind < 0.15:
        return None
    return min(29.9, chance.expovariate(1 / 4)) if kind < 0.8 else chance.uniform(0.01, 29.9)


def draw_runs(seed: int, each: float = 1.0) -> list[float]:
    """The days on which the scheduler runs: about one each day, none for a week, until after the
    expiry.
    """
    chance = random.Random(seed + 1)  # noqa: S311 - a simulation
    runs, day = [], 0.0
    while day < EXPIRY + 3:
        runs.append(day)
        day += each * chance.uniform(0.5, 1.5)
    return [day for day in runs if not 12 < day < 18]


def predict(vendor: Vendor, runs: Sequence[float]) -> End:
    """What the model says."""
    first = runs[0]
    messages, reminded_until = 1, first
    for now in runs[1:]:
        if vendor.day is not None and first + vendor.day <= now:
            return End("failed" if vendor.junk else "done", messages, not vendor.junk)
        if now >= first + EXPIRY:
            return End("expired", messages, stored=False)
        if any(reminded_until < first + moment <= now for moment in REMINDERS):
            messages, reminded_until = messages + 1, now
    raise AssertionError("the runs end before the request does")


def play(
    world: BatchWorld, vendors: Sequence[Vendor], runs: Sequence[float], *, threads: int = 1
) -> dict[str, End]:
    """Let the engine do it: how each row ended.

    After each run the clock is set back by an hour, where nothing is due.
    """
    path = world.write(
        FILE, [{"name": each.name, "to": f"{each.name}.example"} for each in vendors]
    )
    waiting = sorted(
        (each for each in vendors if each.day is not None), key=lambda each: each.day or 0.0
    )
    for day in runs:
        while waiting and (waiting[0].day or 0.0) <= day - runs[0]:
            vendor = waiting.pop(0)
            code = world.code_of(f"{vendor.name}.example")
            world.submit(code, data="AA==" if vendor.junk else None)
        world.wait(day * DAY - world.elapsed)
        world.run(path, threads=threads)
        sent = len(world.loft.messages)
        world.wait(-HOUR)
        world.run(path, threads=threads)
        assert len(world.loft.messages) == sent
        world.wait(HOUR)
    states = world.states(path)
    return {
        each.name: End(
            states[each.name],
            len(world.messages(f"{each.name}.example")),
            each.name in world.loft.values,
        )
        for each in vendors
    }


class FakedWorld(BatchWorld):
    """A world on PostgreSQL in which everything has libfaketime's clock (`support.faked_time`).

    Each run has a connection of its own. Beside them works a worker that lives all the time, so
    that its database's clock jumps again and again. A thread each: under libfaketime, a Python
    whose threads wait for each other is five times as slow.
    """

    def __init__(self, folder: Path, address: str) -> None:
        database = open_database(folder, Secret(address))
        prepare_tables(database)
        database.close()
        super().__init__(folder, database=Secret(address))
        self._workers_store = self.open_store()
        self._worker = Worker(self.session(), self._workers_store, threads=1)
        self._thread = threading.Thread(target=self._worker.run)
        self._thread.start()

    def close(self) -> None:
        self._worker.stop()
        self._thread.join()
        self._workers_store.close()
        super().close()

    def open_store(self, previous: str | None = None) -> BatchStore:
        store = super().open_store(previous)
        store.clock_offset = 0
        return store

    def wait(self, seconds: float) -> None:
        self.elapsed += seconds
        move_clock(self.elapsed)

    def run(self, path: Path, **options: Any) -> RunResult:
        """Run until nothing is due: what the worker has begun, it ends."""
        self.store.close()
        self.store = self.open_store()
        while True:
            result = super().run(path, **options)
            if result.next_due is None or result.next_due > self.store.now():
                return result
            assert self._thread.is_alive()
            time.sleep(0.1)
