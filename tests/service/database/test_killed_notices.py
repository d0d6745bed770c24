"""A process that is killed where an event is decided: the event has its notice, or there is
neither.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from sealpipe_service.database import postgresql
from service.database.stores import NOON, World


def kill_at(moment: int) -> None:
    """Let this process be killed before a message to PostgreSQL, or a statement of SQLite's."""
    run, numbers, connect = postgresql.Connection.run, count(), sqlite3.connect

    def tick(_: object = None) -> None:
        if next(numbers) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def run_unless(self: postgresql.Connection, statements: Sequence[postgresql.Bound]) -> Any:
        tick()
        return run(self, statements)

    def connect_unless(*words: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*words, **options)
        connection.set_trace_callback(tick)
        return connection

    postgresql.Connection.run = run_unless  # type: ignore[method-assign]
    sqlite3.connect = connect_unless  # type: ignore[assignment]


def is_killed(address: str, what: Callable[[World], object], moment: int) -> bool:
    """Do something in a process of its own; return whether it was killed at that moment."""
    process = os.fork()
    if process == 0:
        try:
            kill_at(moment)
            what(World(address))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


def is_open(world: World, code: str) -> bool:
    return world.store.share_at_link(code)[1] is None


def make_expired(world: World) -> str:
    """Make the only share that is due: what a killed process left would be swept, too."""
    world.store.sweep()
    return world.share(notify_on='["expired"]', expires=NOON - 1)


def is_not_swept(world: World, code: str) -> bool:
    row, _ = world.store.share_at_link(code)
    return row is not None and row["ended_at"] is None


def is_empty(world: World, code: str) -> bool:
    return not world.request_row(code)["received"]


EVENTS: dict[str, Sequence[Callable[..., Any]]] = {
    "viewed": (
        lambda world: world.share(notify_on='["viewed"]', access_counts_left=1),
        World.open,
        is_open,
    ),
    "deleted": (lambda world: world.share(notify_on='["deleted"]'), World.delete, is_open),
    "expired": (
        make_expired,
        lambda world, _: world.store.sweep(),
        is_not_swept,
    ),
    "submitted": (World.request, World.submit, is_empty),
}


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_has_its_notice_or_there_is_neither(
    event: str, address: str, shared: World
) -> None:
    make, do, is_as_before = EVENTS[event]
    shared.mail()
    found = set[bool]()
    for moment in range(60):
        code = make(shared)

        def cause(world: World, code: str = code) -> object:
            return do(world, code)

        was_killed = is_killed(address, cause, moment)
        happened = not is_as_before(shared, code)
        assert happened == ((event, code) in shared.notices()), f"killed at {moment}"
        found.add(happened)
        if not was_killed:
            break
    assert found == {True, False}
    assert moment > 3
