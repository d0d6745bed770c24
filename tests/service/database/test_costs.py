"""What calls cost at each database: statements, commits, and those that wait for the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from sealpipe_service.database import postgresql, sqlite
from service.database.stores import World

KEY = "k" * 16
Cost = tuple[int, int, int]


class Trace:
    """What is run on connections."""

    def __init__(self) -> None:
        self.run: list[tuple[object, str]] = []

    def cost(self, call: Callable[[], object]) -> Cost:
        """Statements, commits of changes, and those of them that are on the disk."""
        self.run.clear()
        call()
        statements, commits, synced = 0, 0, 0
        begun: dict[object, str] = {}
        for connection, text in list(self.run):
            match text.split()[0]:
                case "BEGIN":
                    begun[connection] = text
                case "COMMIT":
                    commits += changes(begun[connection])
                    synced += changes(begun[connection]) and is_synced(
                        connection, begun.pop(connection)
                    )
                case "ROLLBACK" | "--":
                    pass
                case _:
                    statements += 1
        return statements, commits, synced


def changes(begin: str) -> bool:
    return begin == "BEGIN IMMEDIATE" or "READ WRITE" in begin


def is_synced(connection: object, begin: str) -> bool:
    if isinstance(connection, sqlite3.Connection):
        return bool(connection.execute("PRAGMA synchronous").fetchone()[0] == 2)
    return "synchronous_commit = on" in begin


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    trace = Trace()

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(lambda text: trace.run.append((self, text)))

    connect, execute = sqlite3.connect, postgresql.Connection.execute

    def traced_connect(*words: Any, **options: Any) -> sqlite3.Connection:
        return connect(*words, factory=Traced, **options)

    def traced_execute(self: postgresql.Connection, text: Any, *words: Any, **options: Any) -> Any:
        trace.run.append((self, text.decode()))
        return execute(self, text, *words, **options)

    monkeypatch.setattr(sqlite.sqlite3, "connect", traced_connect)  # type: ignore[attr-defined]
    monkeypatch.setattr(postgresql.Connection, "execute", traced_execute)
    return trace


@pytest.fixture
def store(address: str) -> str:
    return "postgresql" if address.startswith("postgresql:") else "sqlite"


def call(world: World, then: Callable[[], object]) -> Callable[[], object]:
    """The key is looked up, its rate is taken, and the call is handled."""

    def handle() -> None:
        world.store.caller(KEY)
        world.store.take(KEY, 600, world.clock.now)
        then()

    return handle


def test_a_get_of_a_share_is_three_statements_and_waits_for_no_disk(
    trace: Trace, shared: World
) -> None:
    code = shared.share()
    assert trace.cost(call(shared, lambda: shared.store.share("acme", code))) == (3, 1, 0)


def test_a_page_of_a_list_is_four_statements_and_waits_for_no_disk(
    trace: Trace, shared: World
) -> None:
    shared.share()
    page = call(shared, lambda: shared.store.page("shares", "acme", most=25, skipped=0))
    assert trace.cost(page) == (4, 1, 0)


def test_a_create_waits_for_the_disk_once(trace: Trace, shared: World, store: str) -> None:
    expected = {
        # caller, take | marked, replay, mark | count, insert, record | unmark; and the test's now
        "sqlite": (10, 4, 1),
        # caller, take | locks, replay, count, insert, record; and the test's now
        "postgresql": (8, 2, 1),
    }
    assert trace.cost(call(shared, shared.share)) == expected[store]


def test_a_replay_is_five_statements_and_waits_for_no_disk(
    trace: Trace, shared: World, store: str
) -> None:
    shared.share("key")
    expected = {"sqlite": (5, 2, 0), "postgresql": (5, 1, 0)}  # a lock needs no commit of its own
    assert trace.cost(call(shared, lambda: shared.share("key"))) == expected[store]


def test_opening_a_share_is_three_statements_and_waits_for_the_disk_once(
    trace: Trace, shared: World
) -> None:
    code = shared.share()
    assert trace.cost(lambda: shared.open(code)) == (3, 1, 1)


def test_deleting_is_one_statement_that_decides(trace: Trace, shared: World) -> None:
    code = shared.share()
    # delete, count, and whether there are endpoints to tell: account, webhooks
    assert trace.cost(lambda: shared.delete(code)) == (4, 1, 1)
