"""A database that does not answer: it is told soon, without its address, and all goes on after it.

All but the last are PostgreSQL's own ([postgresql).
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sealpipe_service.database import migrating, postgresql
from sealpipe_service.database.access import (
    DatabaseError,
    InFlightError,
    UnavailableError,
)
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.postgresql import Postgresql
from service.database.stores import World, digest
from support.clusters import add_clock
from support.parts import Postgres, run_postgres
from support.ports import silent_port

SOON = 2.0
"""Seconds, on a busy machine: far from a minute."""


@pytest.fixture(params=["postgresql"])
def server() -> Iterator[Postgres]:
    """A PostgreSQL of the test's own, with the tables."""
    with run_postgres() as server:
        add_clock(server.address)
        migrating.make(server.address)
        yield server


@pytest.fixture
def world(server: Postgres) -> Iterator[World]:
    world = World(server.address)
    yield world
    world.store.close()


def test_a_killed_database_is_told_at_once_and_used_again_when_it_is_back(
    server: Postgres, world: World
) -> None:
    code = world.share()
    server.kill()
    began = time.monotonic()
    for call in (lambda: world.store.share("acme", code), world.share, lambda: world.open(code)):
        with pytest.raises(UnavailableError, match=r"^the PostgreSQL database postgres at "):
            call()
    assert time.monotonic() - began < SOON
    server.start()
    assert world.open(code).reason is None
    server.stop()
    server.start()  # connections that were made before are stale: nobody notices
    assert world.store.share("acme", code) is not None
    assert world.counted() == (1, 0)


def test_a_database_that_falls_silent_is_given_up(
    server: Postgres, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = world.share()
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", 0.5)
    stopped = server.processes()
    for each in stopped:
        os.kill(each, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(UnavailableError):
            world.store.share("acme", code)
        # The waiting connection's half second, and five for a new one.
        assert time.monotonic() - began < 5.5 + SOON
    finally:
        for each in stopped:
            os.kill(each, signal.SIGCONT)
    assert world.store.share("acme", code) is not None


def test_who_finds_all_connections_in_use_waits_and_is_refused(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Postgresql(server.address, size=1)) as database:
        store = Store(database)
        monkeypatch.setattr(database._pool, "_seconds", 0.1)
        with database.read() as held:
            held.row("now")
            with pytest.raises(UnavailableError, match="in use"):
                store.now()
        assert store.now() > 0
        with database.read() as held:
            held.row("now")
            monkeypatch.setattr(database._pool, "_seconds", 30)
            waiting = threading.Thread(target=store.now)
            waiting.start()
        waiting.join(SOON)
        assert not waiting.is_alive()
    with psycopg.connect(server.address) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sealpipe server'"
        ).fetchone() or (None,)
    assert count == 0


def test_a_fork_makes_connections_of_its_own(world: World) -> None:
    code = world.share()
    child = os.fork()
    if not child:
        os._exit(0 if world.open(code).reason is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert world.open(code).reason is None
    assert sum(world.store.stats("acme")[2].values()) == 2


def test_a_transaction_that_hangs_holds_up_others_only_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = postgresql._WRITE.replace(b"'8s'", b"'1s'")
    monkeypatch.setattr(postgresql, "_WRITE", short)
    with world.store.claim("k" * 16, "key", digest("body")) as hangs:
        with pytest.raises(InFlightError):
            world.share("key")
        time.sleep(1.5)
        code, columns = world.share("key"), world.columns()
        with pytest.raises(UnavailableError):
            hangs.create("shares", columns, str.encode, world.code)
    assert world.share("key") == code


def test_nothing_is_committed_by_halves(server: Postgres, world: World) -> None:
    """Calls while the database is killed: what was answered is there, and nothing twice."""
    answered: dict[str, str] = {}
    is_over = threading.Event()

    def create(thread: int) -> None:
        number = 0
        while not is_over.is_set():
            name = f"{thread}-{number}"
            try:
                answered[name] = world.share(name)
            except DatabaseError:
                time.sleep(0.01)  # and under its key again
            else:
                number += 1

    threads = [threading.Thread(target=create, args=(each,)) for each in range(4)]
    for each in threads:
        each.start()
    for _ in range(5):
        time.sleep(0.3)
        server.kill()
        server.start()
    time.sleep(0.3)
    is_over.set()
    for each in threads:
        each.join(30)
    assert len(answered) > 20
    assert all(world.share(name) == code for name, code in answered.items())
    live, _ = world.counted()
    # At most one of each thread was begun and never asked for again.
    assert len(answered) <= live <= len(answered) + 4


def test_who_cannot_connect_is_told_why(server: Postgres) -> None:
    host = str(server.folder)
    for address, reason in {
        f"postgresql:///postgres?host={host}&user=canary": "there is no such user",
        f"postgresql:///canary?host={host}&user=tests": "there is no such database",
        f"postgresql://tests@127.0.0.1:{silent_port()}/d": "nobody listens there",
        "postgresql://tests@name.invalid/d": "the host is unknown",
    }.items():
        with (
            closing(Postgresql(address)) as database,
            pytest.raises(UnavailableError, match=rf" does not answer \({reason}\)$"),
        ):
            Store(database).now()


@pytest.mark.parametrize("address", ["postgresql://ann:canary@127.0.0.1:{port}/d"])
def test_an_error_shows_neither_password_nor_user(address: str) -> None:
    with closing(Postgresql(address.format(port=silent_port()))) as database:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as refused:
            Store(database).now()
        assert time.monotonic() - began < SOON
    assert "canary" not in repr(refused.value)
    assert "ann" not in str(refused.value)
    assert refused.value.__context__ is None  # psycopg's own says more


def test_an_error_shows_no_value(world: World) -> None:
    with pytest.raises(DatabaseError) as refused:
        world.share(title="canary", created_at="canary")
    assert "canary" not in repr(refused.value)
    assert refused.value.__context__ is None


def test_a_locked_file_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealpipe_service.database.sqlite.BUSY_SECONDS", 0.1)
    world = World(str(tmp_path / "service.db"))
    with closing(sqlite3.connect(tmp_path / "service.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="locked"):
            world.share()
    assert world.share()
    world.store.close()
