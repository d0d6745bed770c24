"""Batches in PostgreSQL by the commands: tables first, then any number of machines; the address is
a secret.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from unittest import mock

import psycopg
import pytest
from psycopg import sql

from sealpipe.batch.database.postgres import PostgresDatabase
from sealpipe.batch.database.records import SECOND
from sealpipe_rehearsal.running_service import RunningService
from support.parts import Postgres, run_postgres
from support.terminal import Terminal

VENDORS = """
name = "vendors"
kind = "request"
key = "name"
row = [{name = "acme"}, {name = "bolt"}]

[request]
ask = ["Password"]
send = ["file:{name}.link"]
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> str:
    """The address of a new, empty database."""
    name = f"batches_{token_hex(8)}"
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return postgres.address.replace("/postgres?", f"/{name}?")


@pytest.fixture
def machines(
    user: Terminal, tmp_path: Path, service: RunningService, database: str
) -> tuple[Terminal, Terminal]:
    """Two machines with one credential and one database, and nothing else in common."""
    del service
    other = Terminal(
        tmp_path / "other",
        **{name: value for name, value in user.environ.items() if name[:8] == "SEALPIPE"},
    )
    for each in (user, other):
        each.environ |= {"DATABASE_URL": database, "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}
        each.file("vendors.toml", VENDORS)
    return user, other


def test_two_machines_share_a_database(
    machines: tuple[Terminal, Terminal], service: RunningService
) -> None:
    first, second = machines
    missing = first.sealpipe("batch", "run", "vendors.toml")
    assert (missing.code, missing.out) == (2, "")
    assert "run `sealpipe batch database init`" in missing.err
    assert service.seen() == []
    made = first.sealpipe(
        "batch", "database", "init", SEALPIPE_API_KEY=None, SEALPIPE_BASE_URL=None
    )
    assert (made.code, made.out) == (0, ""), made
    assert made.err.endswith("are ready\n")
    assert first.sealpipe("batch", "database", "upgrade", "--output", "json").json["ready"] is True

    assert first.sealpipe("batch", "run", "vendors.toml").out == "vendors\t2 rows: 2 waiting\n"
    again = second.sealpipe("batch", "run", "vendors.toml", "--output", "json").json
    assert (again["changes"], again["counts"]) == ([], {"waiting": 2})
    assert second.sealpipe("batch", "cancel", "vendors", "acme").err == "acme: cancelled\n"
    assert first.sealpipe("batch", "status", "vendors", "--output", "json").json["counts"] == {
        "waiting": 1,
        "cancelled": 1,
    }
    worker = second.sealpipe("batch", "worker", "--for", "2s")
    assert (worker.code, worker.err.splitlines()[-1]) == (0, "stopped"), worker
    assert not (first.home / ".local/state/sealpipe/batch").exists()


@contextmanager
def clocks(*, of_machine: float, of_database: float = 0) -> Iterator[None]:
    """Set the clocks of a machine and of the database wrong by so many seconds."""
    now, now_ns, read_clock = time.time, time.time_ns, PostgresDatabase.read_clock
    with (
        mock.patch("time.time", side_effect=lambda: now() + of_machine),
        mock.patch("time.time_ns", side_effect=lambda: now_ns() + round(of_machine * 1e9)),
        mock.patch.object(
            PostgresDatabase,
            "read_clock",
            lambda self: read_clock(self) + round(of_database * SECOND),
        ),
    ):
        yield


def test_the_clock_of_a_machine_does_not_matter(machines: tuple[Terminal, Terminal]) -> None:
    ahead, behind = machines
    assert ahead.sealpipe("batch", "database", "init").code == 0
    for each in machines:
        each.file("clocks.toml", VENDORS.replace("vendors", "clocks"))
    words = ("batch", "run", "clocks.toml", "--output", "json")
    with clocks(of_machine=7200):
        assert ahead.sealpipe(*words).json["counts"] == {"waiting": 2}
        early = ahead.sealpipe(*words).json
    rows = behind.sealpipe("batch", "status", "clocks", "--output", "json").json["rows"]
    assert [
        abs(datetime.fromisoformat(row["since"]).timestamp() - time.time()) < 600 for row in rows
    ] == [True, True]
    with clocks(of_machine=-7200):
        too_early = behind.sealpipe(*words).json
    assert [(done["changes"], done["calls"]) for done in (early, too_early)] == [([], 0)] * 2
    with clocks(of_machine=-7200, of_database=120):
        assert behind.sealpipe(*words).json["calls"] >= len(rows)
