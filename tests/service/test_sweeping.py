"""Time ends what has expired and drops what is not kept, also when nobody calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from sealpipe_service import app
from sealpipe_service.sweeping import Sweeper
from service.callers import Api
from service.serving import serving

CANARY = "Y2FuYXJ5" * 40
SOON = 0.05


class Machine:
    """The time of the service's machine."""

    def __init__(self) -> None:
        self.late = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.late


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def running(tmp_path: Path, machine: Machine) -> Iterator[RunningService]:
    with start(state=tmp_path / "state.db", clock=machine, extended=True) as running:
        yield running


@pytest.fixture
def expired(running: RunningService, machine: Machine, caller: Callable[..., Api]) -> str:
    """A share whose end has come, with nobody who asks for it."""
    end = datetime.now(UTC) + timedelta(hours=1)
    made = caller(running).create(
        data=CANARY, expired_at=end.isoformat(), notify_on=["expired"], title="title"
    )
    assert made.status_code == 201
    machine.late = timedelta(hours=2)
    code: str = made.json()["short_code"]
    return code


def is_kept(folder: Path) -> bool:
    return any(CANARY.encode() in file.read_bytes() for file in folder.iterdir())


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(running: RunningService) -> list[str]:
    return [note.about for note in running.notes() if note.what == "owner.notified"]


def test_what_expires_ends_without_a_call(
    running: RunningService, tmp_path: Path, expired: str
) -> None:
    assert is_kept(tmp_path)
    sweeper = Sweeper(running.service, SOON)
    sweeper.start()
    try:
        until(lambda: told(running))
        until(lambda: not is_kept(tmp_path))
    finally:
        sweeper.stop()
    assert told(running) == [f"{expired} expired"]
    assert "sealpipe-sweeper" not in {thread.name for thread in threading.enumerate()}


def test_a_sweep_that_fails_is_tried_again(
    running: RunningService, expired: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = running.service.database
    database.run_text("ALTER TABLE shares RENAME TO away")
    sweeper = Sweeper(running.service, SOON)
    sweeper.start()
    try:
        until(lambda: len(caplog.records) > 1)
        assert told(running) == []
        database.run_text("ALTER TABLE away RENAME TO shares")
        until(lambda: told(running) == [f"{expired} expired"])
    finally:
        sweeper.stop()


@pytest.mark.usefixtures("expired")
def test_the_application_sweeps_while_it_is_served(running: RunningService, tmp_path: Path) -> None:
    application = app.build(running.service)

    async def serve() -> None:
        async with application.router.lifespan_context(application):
            await asyncio.to_thread(until, lambda: not is_kept(tmp_path))

    asyncio.run(serve())
    assert "sealpipe-sweeper" not in {thread.name for thread in threading.enumerate()}


def test_a_rehearsal_sweeps_what_expired_while_it_was_stopped(
    tmp_path: Path, caller: Callable[..., Api]
) -> None:
    state = tmp_path / "state.db"
    before = datetime.now(UTC) - timedelta(hours=3)
    with start(state=state, clock=lambda: before) as running:
        end = before + timedelta(hours=1)
        assert caller(running).create(data=CANARY, expired_at=end.isoformat()).status_code == 201
    assert is_kept(tmp_path)
    with serving(state):
        until(lambda: not is_kept(tmp_path))
