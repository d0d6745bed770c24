"""What calls cost at each database: statements, commits, and those that wait for the disk."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sealpipe_service.database import postgresql, sqlite, sqlite_text
from service.database.stores import World, run_text

KEY = "k" * 16
Cost = tuple[int, int, int]
FUNCTION = re.compile(r"^SELECT .*?sealpipe_(\w+)_[0-9a-f]{8}\(.*")


def statement_of(call: re.Match[str]) -> str:
    """The statement that a function of PostgreSQL has as its body."""
    return sqlite_text.STATEMENTS[call[1]]


class Trace:
    """What is run on connections."""

    def __init__(self) -> None:
        self.run: list[tuple[object, str]] = []
        self.messages = 0

    def cost(self, call: Callable[[], object]) -> Cost:
        """Statements, commits of changes, and those of them that are on the disk."""
        self.run.clear()
        self.messages = 0
        call()
        statements, ends = 0, list[bool]()
        begun: dict[object, str] = {}
        for connection, text in list(self.run):
            match text.split()[0]:
                case "BEGIN" | "SET":
                    begun[connection] = text
                case "COMMIT" | "ROLLBACK" as end:
                    begin = begun.pop(connection)
                    is_change = end == "COMMIT" and begin != "BEGIN"
                    ends += [is_synced(connection, begin)] if is_change else []
                case "--":
                    pass
                case word:
                    statements += 1
                    begin = begun.get(connection, "")
                    if not begin.startswith("BEGIN"):  # it is a transaction by itself
                        begun.pop(connection, None)
                        ends += [is_synced(connection, begin)] if word != "SELECT" else []
        return statements, len(ends), sum(ends)


def is_synced(connection: object, begin: str) -> bool:
    if isinstance(connection, sqlite3.Connection):
        return bool(connection.execute("PRAGMA synchronous").fetchone()[0] == 2)
    return "synchronous_commit = off" not in begin


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    trace = Trace()

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(lambda text: trace.run.append((self, text)))

    connect, run = sqlite3.connect, postgresql.Connection.run

    def traced_connect(*words: Any, **options: Any) -> sqlite3.Connection:
        return connect(*words, factory=Traced, **options)

    def traced_run(self: postgresql.Connection, statements: Sequence[postgresql.Bound]) -> Any:
        trace.messages += 1
        trace.run += [(self, FUNCTION.sub(statement_of, text.decode())) for text, _ in statements]
        return run(self, statements)

    monkeypatch.setattr(sqlite.sqlite3, "connect", traced_connect)  # type: ignore[attr-defined]
    monkeypatch.setattr(postgresql.Connection, "run", traced_run)
    return trace


@pytest.fixture
def store(address: str) -> str:
    return "postgresql" if address.startswith("postgresql:") else "sqlite"


def call(world: World, then: Callable[[], object]) -> Callable[[], object]:
    """The key is looked up, its rate is taken, and the call is handled."""
    world.store.now()  # who connects first asks which functions there are

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
        # caller, take | replay | insert, count, record; and the test's now
        "sqlite": (7, 2, 1),
        # caller, take | locks, replay, count, insert, record; and the test's now
        "postgresql": (8, 2, 1),
    }
    assert trace.cost(call(shared, shared.share)) == expected[store]


def test_a_replay_waits_for_no_disk(trace: Trace, shared: World, store: str) -> None:
    shared.share("key")
    # caller, take | locks (of SQLite's, a file's), replay; and the test's now
    expected = {"sqlite": (4, 1, 0), "postgresql": (5, 1, 0)}
    assert trace.cost(call(shared, lambda: shared.share("key"))) == expected[store]


def test_opening_a_share_is_three_statements_and_waits_for_the_disk_once(
    trace: Trace, shared: World
) -> None:
    code = shared.share()
    assert trace.cost(lambda: shared.open(code)) == (3, 1, 1)


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_a_message_takes_along_what_nobody_waits_for(trace: Trace, shared: World) -> None:
    trace.cost(call(shared, shared.share))
    # caller | take | begin, locks, replay | insert | count, record, commit; and the test's now
    assert trace.messages == 6
    code = shared.share()
    trace.cost(call(shared, lambda: shared.store.share("acme", code)))
    assert trace.messages == 3
    trace.cost(lambda: shared.open(code))
    # begin, share | open | view, commit
    assert trace.messages == 3


def test_deleting_is_one_statement_that_decides(trace: Trace, shared: World) -> None:
    code = shared.share()
    # delete, count, and whether there are endpoints to tell: account, webhooks
    assert trace.cost(lambda: shared.delete(code)) == (4, 1, 1)


DROP = """DO $$ DECLARE each regprocedure; BEGIN
    FOR each IN SELECT oid FROM pg_proc WHERE proname ^@ 'sealpipe_' LOOP
        EXECUTE format('DROP FUNCTION %s', each); END LOOP; END $$"""


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_without_the_functions_of_this_program_its_statements_run_as_they_are(
    trace: Trace, address: str
) -> None:
    run_text(address, DROP)
    world = World(address)
    world.store.now()
    assert trace.cost(call(world, world.share)) == (8, 2, 1)
    world.store.close()
