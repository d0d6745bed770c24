"""A process on PostgreSQL that stands still at any step, longer than it takes to be thought dead,
and wakes after another one has gone on with its row: nothing happens twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from cli.batch.killing import KillSwitch
from cli.batch.request_batch import FILE
from cli.batch.stories import ROWS, STORIES, check, tell
from cli.batch.world import BatchWorld
from sealpipe.batch.database.opening import open_database, prepare_tables
from sealpipe.batch.database.records import ConflictError
from sealpipe.batch.engine.session import run_batch
from sealpipe.batch.file.reading import read_definition
from sealpipe.secret import Secret
from support.parts import Postgres, run_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        database = open_database(Path("/nonexistent"), Secret(server.address))
        prepare_tables(database)
        database.close()
        yield server


class Pause(KillSwitch):
    """Lets a machine stand still at step `at`, while others do something, instead of killing it."""

    def __init__(self, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._pause_at, self._meanwhile = at, meanwhile
        self._is_still = False

    def step(self, name: str) -> None:
        if self._is_still:  # these are steps of the others
            return
        super().step(name)
        if len(self.steps) == self._pause_at:
            self._is_still = True
            self._meanwhile()
            self._is_still = False


def run_as_another(world: BatchWorld, path: Path, server: Postgres, log: list[str]) -> None:
    """Find every other machine dead, and run the batch."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(
            "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'"
        )
    store = world.open_store()
    run_batch(world.session(), store, read_definition(path), threads=1)
    log += [method for method, _ in world.network.log]
    store.close()


def play(folder: Path, postgres: Postgres, story: int, at: int) -> int:
    """One story; its machine stands still at that step. Returns its steps."""
    folder.mkdir()
    world = BatchWorld(folder, database=Secret(postgres.address))
    path = world.write(FILE.replace('"vendors"', f'"still-{story}-{at}"'), ROWS)
    tell(world, path, story)
    others = list[str]()
    pause = Pause(at, lambda: run_as_another(world, path, postgres, others))
    session = world.session
    networks = []

    def note_session(previous: str | None = None) -> object:
        made = session(previous)
        networks.append(world.network)
        return made

    world.session = note_session  # type: ignore[method-assign, assignment]
    try:
        with pause.watching(world), suppress(ConflictError):  # both brought the file
            world.run(path)
        check(world, path, story)
        deletes = [method for each in networks for method, _ in each.log].count("DELETE")
        assert deletes == (story == 2)
        assert len(world.all_requests()) == 1
        assert len(world.active_requests()) == (story != 2)
    except AssertionError as error:
        error.add_note(f"stood still at step {at}, {pause.steps[-5:]}")
        raise
    world.store.purge_batch(world.engine(path).batch)
    world.close()
    return len(pause.steps)


@pytest.mark.parametrize("story", range(3), ids=STORIES)
def test_nothing_happens_twice_wherever_it_stands_still(
    tmp_path: Path, postgres: Postgres, story: int
) -> None:
    steps = play(tmp_path / "0", postgres, story, 0)
    assert steps > 10
    for at in range(1, steps + 1):
        play(tmp_path / str(at), postgres, story, at)
