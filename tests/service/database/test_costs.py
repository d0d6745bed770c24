"""What calls cost at the database: statements, commits, and those that wait for the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sealpipe_service.database import sqlite
from service.database.stores import World

KEY = "k" * 16


class Traced(sqlite3.Connection):
    """A connection that notes what is run on it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_trace_callback(lambda text: RUN.append((self, text)))


RUN: list[tuple[sqlite3.Connection, str]] = []


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite.sqlite3,  # type: ignore[attr-defined]
        "connect",
        lambda *words, **options: connect(*words, factory=Traced, **options),
    )
    world = World(tmp_path / "service.db")
    yield world
    world.store.close()
    RUN.clear()


def cost(call: Callable[[], object]) -> tuple[int, int, int]:
    """Statements, commits, and commits that are on the disk."""
    RUN.clear()
    call()
    run = [(connection, text.split()[0], text) for connection, text in RUN]
    begun = {connection for connection, _, text in run if text == "BEGIN IMMEDIATE"}
    commits = [
        connection for connection, word, _ in run if word == "COMMIT" and connection in begun
    ]
    statements = [text for _, word, text in run if word not in ("BEGIN", "COMMIT", "--")]
    synced = sum(
        connection.execute("PRAGMA synchronous").fetchone()[0] == 2 for connection in commits
    )
    return len(statements), len(commits), synced


def call(world: World, then: Callable[[], object]) -> None:
    """The key is looked up, its rate is taken, and the call is handled."""
    world.store.caller(KEY)
    world.store.take(KEY, 600, world.clock.now)
    then()


def test_a_get_of_a_share_is_three_statements_and_waits_for_no_disk(world: World) -> None:
    code = world.share()
    assert cost(lambda: call(world, lambda: world.store.share("acme", code))) == (3, 1, 0)


def test_a_page_of_a_list_is_four_statements_and_waits_for_no_disk(world: World) -> None:
    world.share()
    shown = cost(
        lambda: call(world, lambda: world.store.page("shares", "acme", most=25, skipped=0))
    )
    assert shown == (4, 1, 0)


def test_a_create_is_ten_statements_and_waits_for_the_disk_once(world: World) -> None:
    # caller, take | marked, replay, mark | count, insert, record | unmark; and the test's own now
    assert cost(lambda: call(world, lambda: world.share())) == (10, 4, 1)


def test_a_replay_is_five_statements_and_waits_for_no_disk(world: World) -> None:
    world.share("key")
    assert cost(lambda: call(world, lambda: world.share("key"))) == (5, 2, 0)


def test_opening_a_share_is_three_statements_and_waits_for_the_disk_once(world: World) -> None:
    code = world.share()
    assert cost(lambda: world.open(code)) == (3, 1, 1)


def test_deleting_is_one_statement_that_decides(world: World) -> None:
    code = world.share()
    # delete, count, and whether there are endpoints to tell: account, webhooks
    assert cost(lambda: world.delete(code)) == (4, 1, 1)
