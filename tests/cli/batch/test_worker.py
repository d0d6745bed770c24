"""Workers on one PostgreSQL: any number of them, one of them killed, and the database restarted in the middle."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from cli.batch.test_requests import FILE, ROWS
from cli.batch.test_running import MANY
from cli.batch.world import BatchWorld
from sealpipe.batch.database.opening import open_database, prepare_schema
from sealpipe.batch.engine.session import run_batch
from sealpipe.batch.engine.sync import sync
from sealpipe.batch.engine.worker import Worker, prepare_queue
from sealpipe.batch.file.reading import read_definition
from sealpipe.secret import Secret
from support.parts import Postgres, run_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def shared_world(tmp_path: Path, postgres: Postgres) -> Iterator[BatchWorld]:
    """A world whose database is PostgreSQL, empty at first."""
    address = Secret(postgres.address)
    database = open_database(tmp_path, address)
    prepare_schema(database)
    database.close()
    asyncio.run(prepare_queue(address))
    made = BatchWorld(tmp_path, database=address)
    yield made
    made.close()


def work(world: BatchWorld, seconds: float, **options: object) -> Worker:
    """A worker of its own for so long, with a connection of its own."""
    store = world.open_store()
    worker = Worker(world.session(), store, world.database, driver=world.driver(store=store), **options)
    worker.run(seconds)
    store.close()
    return worker


def test_a_worker_makes_delivers_and_collects(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE, ROWS)
    sync(world.store, read_definition(path))
    work(world, 3)
    assert set(world.states(path).values()) == {"waiting"}
    world.submit(world.code_of("acme.example"))
    world.wait(86400)
    work(world, 3)
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}


def test_workers_share_the_rows_and_do_nothing_twice(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"many"'), MANY)
    sync(world.store, read_definition(path))
    threads = [threading.Thread(target=work, args=(world, 5)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(world.states(path).values()) == {"waiting"}
    assert len({message.short_code for _, message in world.loft.messages}) == len(world.loft.messages) == 20


def test_runs_and_workers_go_on_with_each_others_rows(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"both"'), MANY)
    driver = world.driver()
    run_batch(driver.session, world.store, read_definition(path), only=["v00", "v01"], driver=driver)
    work(world, 3)
    assert set(world.states(path).values()) == {"waiting"}
    assert len(world.loft.messages) == 20


def test_a_database_that_restarts_in_the_middle_loses_nothing(shared_world: BatchWorld, postgres: Postgres) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"restarted"'), MANY)
    sync(world.store, read_definition(path))
    restarts = []

    def restart(_: str) -> None:
        if len(world.loft.messages) == 5 and not restarts:
            restarts.append(True)
            postgres.kill()
            postgres.start()

    world.loft.after = restart
    work(world, 3, threads=1)
    world.wait(600)
    work(world, 4)
    states = world.states(path)
    unclear = [key for key, state in states.items() if state == "blocked"]
    assert restarts
    assert set(states.values()) <= {"waiting", "blocked"}
    assert len(unclear) <= 1, "the message that was on its way may have arrived"
    assert (len(world.all_requests()), len(world.loft.messages)) == (20, 20)


def test_jobs_hold_nothing_but_ids(shared_world: BatchWorld, postgres: Postgres) -> None:
    """What is in the queue's tables while a worker works: no name, no address, no code."""
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"canary-batch"'), ROWS)
    sync(world.store, read_definition(path))
    seen: list[str] = []

    def look(_: str) -> None:
        with psycopg.connect(postgres.address) as connection:
            seen.append(str(connection.execute("SELECT * FROM procrastinate_jobs").fetchall()))

    world.loft.after = look
    work(world, 2, threads=2)
    assert len(seen) == 3, world.progress(path, "acme").problem
    for word in ("canary", "acme", "example", "CRM", world.code_of("acme.example")):
        assert word not in "".join(seen)


def test_a_job_that_somebody_added_controls_no_log(
    shared_world: BatchWorld, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is logged by the queue's library, which escapes nothing."""
    logger = logging.getLogger("procrastinate")
    monkeypatch.setattr(logger, "propagate", False)  # as in a program without handlers of its own
    monkeypatch.setattr(logger, "handlers", [])
    key_id = shared_world.session().credential.key_id
    with psycopg.connect(postgres.address) as connection:
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES (%s, %s)",
            (f"sealpipe-{key_id}", "canary\n::error::forged\x1b[31m"),
        )
    work(shared_world, 2, threads=1)
    told = capfd.readouterr().err
    assert "canary" in told
    assert "\n::" not in told
    assert "\x1b" not in told
