"""The worker of an embedded database: every batch, at its time, until it is stopped; a run may come
between.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cli.batch.request_batch import FILE, NOTIFY, ROWS
from cli.batch.rounds import do_round, make_worker
from cli.batch.world import BatchWorld
from sealpipe.batch.engine import worker as worker_module
from sealpipe.batch.engine.sync import sync
from sealpipe.batch.file.reading import read_definition
from sealpipe.errors import StateError
from sealpipe.plugin import UnavailableError


def test_a_local_worker_takes_every_batch(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    sync(world.store, read_definition(path))
    changes: list[str] = []
    do_round(make_worker(world, changes))
    assert set(world.states(path).values()) == {"waiting"}
    assert len(changes) == 2 * len(ROWS)


def test_a_local_worker_tells_the_team_every_ten_minutes_and_at_its_end(world: BatchWorld) -> None:
    path = world.write(FILE + NOTIFY, ROWS)
    sync(world.store, read_definition(path))
    worker = make_worker(world)
    do_round(worker)
    assert world.messages("team") == []
    world.wait(600)
    do_round(worker)
    assert "3 rows delivered" in world.messages("team")[0].text.reveal()
    world.submit(world.code_of("acme.example"))
    world.wait(500)
    do_round(worker)
    assert len(world.messages("team")) == 1
    worker.run(0.1)
    assert "1 row collected" in world.messages("team")[1].text.reveal()


def test_a_failed_row_waits_for_its_time(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:2])
    sync(world.store, read_definition(path))
    tried: list[str] = []
    world.loft.before = tried.append
    world.loft.down["*"] = UnavailableError("no pigeon is awake")
    do_round(make_worker(world))
    assert set(world.states(path).values()) == {"failed"}
    first = len(tried)
    do_round(make_worker(world))
    assert len(tried) == first
    world.loft.down.clear()
    world.wait(120)
    do_round(make_worker(world))
    assert set(world.states(path).values()) == {"waiting"}


def test_a_run_and_a_worker_take_turns(world: BatchWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write(FILE, ROWS)
    with world.store.lock_runner(), pytest.raises(StateError, match="another `sealpipe batch run`"):
        make_worker(world).run(0.3)
    monkeypatch.setattr(worker_module, "LONGEST_PAUSE", 60.0)
    lock, has_ended = world.store.lock_runner, threading.Event()

    @contextmanager
    def lock_and_tell() -> Iterator[None]:
        with lock():
            yield
        has_ended.set()

    monkeypatch.setattr(world.store, "lock_runner", lock_and_tell)
    worker = make_worker(world)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert has_ended.wait(60), "the worker's first round"
    world.run(path)  # between two rounds nothing is locked
    assert set(world.states(path).values()) == {"waiting"}
    worker.stop()
    thread.join(60)
    assert not thread.is_alive()
