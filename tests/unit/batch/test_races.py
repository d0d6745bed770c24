"""Threads and processes that race for rows and effects; and whatever is killed, what is stored is
whole.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.records import Batch
from sealpipe.batch.database.store import BatchStore
from unit.batch.stores import (
    Place,
    PostgresPlace,
    add_rows,
    be_thought_dead,
    name_state,
    race_for_effect,
    run_at_once,
    start_worker,
    take_all,
)

ROWS = 40
KEYS = {f"row {number}" for number in range(ROWS)}


def begin(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()


def finish(workers: list[subprocess.Popen[str]]) -> list[str]:
    """Let all begin at once; what they tell until they end."""
    for worker in workers:
        begin(worker)
    return [line for worker in workers for line in worker.communicate(timeout=60)[0].splitlines()]


def check_taken_once(store: BatchStore, batch: Batch, taken: list[str]) -> None:
    assert Counter(taken) == Counter(KEYS)
    assert store.count_states(batch) == {"done": ROWS}
    for row in store.list_rows(batch, contents=True):
        assert (row.version, len(store.read_history(row))) == (2, 1)
        assert [effect.state for effect in store.effects.list(row)] == ["done"]


def test_threads_take_each_row_once(place: Place) -> None:
    # On SQLite, one process works on rows, with one store.
    stores = [place.store() for _ in range(2 if isinstance(place, PostgresPlace) else 1)]
    batch, taken = add_rows(stores[0], ROWS), []
    for store in stores:
        store.find_batch("vendors")
    run_at_once(
        *(lambda store=store: taken.extend(take_all(store, batch)) for store in (stores * 4)[:4])
    )  # type: ignore[misc]
    check_taken_once(stores[0], batch, taken)


def test_processes_take_each_row_once(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, ROWS)
    workers = [start_worker("take", place) for number in range(2)]
    check_taken_once(store, batch, finish(workers))


def test_threads_begin_each_effect_once(place: Place) -> None:
    stores = [place.store() for _ in range(2)]
    batch, begun = add_rows(stores[0], ROWS), []
    run_at_once(
        *(lambda store=store: begun.extend(race_for_effect(store, batch)) for store in stores * 2)
    )  # type: ignore[misc]
    assert Counter(begun) == Counter(KEYS)


def test_processes_begin_each_effect_once(place: Place) -> None:
    add_rows(place.store(), ROWS)
    workers = [start_worker("race", place) for number in range(2)]
    assert Counter(finish(workers)) == Counter(KEYS)


def check_whole(store: BatchStore, batch: Batch, told: list[str]) -> int:
    """Every row and effect opens, each version has its event, and what was told is there; the
    number of versions.
    """
    versions = {}
    for row in store.list_rows(batch, contents=True):
        events = [event.content["v"] for event in store.read_history(row)]
        assert events == list(range(1, row.version))
        effects = store.effects.list(row)
        assert len(effects) in (row.version - 1, row.version)
        assert sum(effect.state != "done" for effect in effects) <= 1
        assert row.state == ("new" if row.version == 1 else name_state(row.version - 1))
        versions[row.id] = row.version
    for line in told:
        row_id, version = line.split()
        assert versions[row_id] >= int(version)
    return sum(versions.values())


def write_and_kill(place: Place, seconds: float) -> list[str]:
    """A process writes, and is killed after that time; what it told."""
    worker = start_worker("write", place)
    begin(worker)
    time.sleep(seconds)
    worker.send_signal(signal.SIGKILL)
    output, _ = worker.communicate(timeout=60)
    return [line for line in output.splitlines(keepends=True) if line.endswith("\n")]


def test_a_worker_killed_while_it_writes_leaves_a_whole_store(place: Place) -> None:
    store, chance = place.store(), random.Random(16)  # noqa: S311 - a test's own moments
    batch, written = add_rows(store, 5), 5
    for _ in range(4):
        told = write_and_kill(place, 0.05 + 0.3 * chance.random())
        now = check_whole(store, batch, told)
        assert now >= written + len(told)
        written = now
        if isinstance(place, PostgresPlace):
            be_thought_dead(place, store, batch)
    if not isinstance(place, PostgresPlace):
        assert place.database().read("PRAGMA integrity_check") == [("ok",)]


def wait_for_writes(store: BatchStore, batch: Batch) -> None:
    """Wait until two more versions are there: whatever was read before has been opened.

    A blob is not found damaged unless two rekeys fall between its reading and its opening.
    """
    end = time.monotonic() + 60
    wanted = 2 + sum(row.version for row in store.list_rows(batch))
    while sum(row.version for row in store.list_rows(batch)) < wanted:
        assert time.monotonic() < end, "the worker wrote nothing"
        time.sleep(0.005)


def test_a_batch_is_rekeyed_while_a_worker_writes(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 5)
    worker = start_worker("write", place)
    lines = list[str]()
    reader = threading.Thread(target=lambda: lines.extend(worker.stdout or ()))
    reader.start()  # else the worker would wait for it
    begin(worker)
    for _ in range(20):
        wait_for_writes(store, batch)
        store.rekey(batch)
    wait_for_writes(store, batch)
    worker.kill()
    reader.join()
    worker.communicate(timeout=60)
    told = [line for line in lines if line.endswith("\n")]
    assert check_whole(place.store(), batch, told) >= 5 + 40
    assert len(place.database().read("SELECT id FROM sealpipe_data_keys")) == 1


def test_a_killed_or_stopped_server_leaves_a_whole_store_and_workers_go_on(
    in_postgres: Place,
) -> None:
    assert isinstance(in_postgres, PostgresPlace)
    store, server = in_postgres.store(), in_postgres.server
    batch = add_rows(store, 5)
    worker = start_worker("write", in_postgres)
    assert worker.stdout is not None
    begin(worker)
    told = []
    for end in (server.kill, server.stop, server.kill):
        told += [worker.stdout.readline() for _ in range(10)]
        end()
        with pytest.raises(DatabaseUnavailableError, match="does not answer") as refused:
            store.count_states(batch)
        assert "check that it runs" in refused.value.remedy
        server.start()
        with suppress(DatabaseUnavailableError):  # it may have been in the middle of a transaction
            store.count_states(batch)
    told += [worker.stdout.readline() for _ in range(10)]
    worker.kill()
    worker.communicate(timeout=60)
    assert check_whole(in_postgres.store(), batch, told) >= len(told)
