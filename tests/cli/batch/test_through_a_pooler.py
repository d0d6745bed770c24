"""Batches on PostgreSQL through pgbouncer, which gives a connection to each transaction: nothing
that lasts longer can be relied on, and nothing may be left behind for others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex

import psycopg
import pytest
from psycopg import sql

from cli.batch.vendors import VENDORS, count_creates
from sealpipe_rehearsal.running_service import RunningService
from support.parts import Postgres, run_postgres
from support.pooler import pooled
from support.terminal import PATIENCE, Terminal

FEW = 2
"""Connections that all workers share, and each of them would like to have more."""
LEFT_OVER = """
SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
    current_setting('synchronous_commit'), (SELECT count(*) FROM pg_prepared_statements),
    (SELECT count(*) FROM pg_listening_channels()),
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')
"""
ROWS = [f"v{number:02}" for number in range(20)]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def direct(postgres: Postgres) -> str:
    """The address of a new, empty database."""
    name = f"batches_{token_hex(8)}"
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return postgres.address.replace("/postgres?", f"/{name}?")


@pytest.fixture
def through(direct: str) -> Iterator[str]:
    """The same, through a pooler of few connections."""
    with pooled(direct, FEW) as address:
        yield address


@pytest.fixture
def desk(user: Terminal, service: RunningService, through: str) -> Terminal:
    """A user with many vendors, whose database is ready."""
    del service
    return make_desk(user, through)


def make_desk(user: Terminal, address: str) -> Terminal:
    user.environ |= {"DATABASE_URL": address, "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}
    user.file("vendors.toml", VENDORS)
    user.file("vendors.csv", "\n".join(["name,to", *(f"{name},{name}.secret" for name in ROWS)]))
    for verb in ("init", "upgrade", "upgrade"):
        assert user.sealpipe("batch", "database", verb).code == 0
    return user


def counts(desk: Terminal) -> dict[str, int]:
    told = desk.sealpipe("batch", "status", "vendors", "--output", "json")
    assert told.code == 0, told
    found: dict[str, int] = told.json["counts"]
    return found


def submit(desk: Terminal, service: RunningService, name: str) -> None:
    text = (desk.here / f"{name}.link").read_text()
    collect_link = next(word for word in text.split() if word.startswith("http"))
    service.submitter().submit(collect_link, {"Password": f"canary-of-{name}"})


@contextmanager
def workers(desk: Terminal, number: int) -> Iterator[None]:
    """So many workers beside each other, none of which ends by itself."""
    running = [desk.start("batch", "worker") for _ in range(number)]
    try:
        for each in running:
            assert each.stderr is not None
            assert each.stderr.readline().startswith("working on the batches")
        yield
        assert [each.poll() for each in running] == [None] * number
    finally:
        for each in running:
            each.terminate()
        ends = [each.communicate(timeout=PATIENCE)[1].splitlines()[-1:] for each in running]
    assert ends == [["stopped"]] * number


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_every_command_works_and_leaves_nothing_on_a_connection(
    desk: Terminal, service: RunningService, through: str
) -> None:
    def batch(*words: str, **environ: str) -> str:
        done = desk.sealpipe("batch", *words, **environ)
        assert done.code == 0, done
        return done.out + done.err

    assert "20 create" in batch("plan", "vendors.toml")
    assert "20 waiting" in batch("run", "vendors.toml")
    submit(desk, service, "v03")
    assert batch("collect", "vendors", "v03") == "v03: collected\n"
    assert "20 rows sealed" in batch("rekey", "vendors")
    old = desk.environ["SEALPIPE_API_KEY"]
    desk.environ["SEALPIPE_API_KEY"] = service.create_key().reveal()
    assert "vendors" in batch("list", SEALPIPE_API_KEY_PREVIOUS=old)
    assert batch("cancel", "vendors", "v05") == "v05: cancelled\n"
    with workers(desk, 1):
        submit(desk, service, "v06")
        assert batch("collect", "vendors", "v06") == "v06: collected\n"
    batch("report", "vendors", "--html", "report.html")
    assert counts(desk) == {"cancelled": 1, "done": 2, "waiting": 17}
    assert (desk.here / "v06.secret").read_text() == "canary-of-v06"
    assert find_left_over(through) == {"0 0 on 0 0 0"}


def find_left_over(through: str) -> set[str]:
    """What former clients have left on the pooler's connections for the next."""
    with psycopg.connect(through, autocommit=True, prepare_threshold=None) as connection:
        found = [connection.execute(LEFT_OVER).fetchone() for _ in range(3 * FEW)]
    return {" ".join(map(str, values or ())) for values in found}


def test_workers_share_two_connections_and_do_nothing_twice(
    desk: Terminal, service: RunningService
) -> None:
    assert desk.sealpipe("batch", "run", "vendors.toml", "--only", "v00").code == 0
    with workers(desk, 3):
        for _ in range(3):
            assert desk.sealpipe("batch", "rekey", "vendors").code == 0
        assert desk.sealpipe("batch", "run", "vendors.toml").code == 0
        wait_until(lambda: counts(desk) == {"waiting": len(ROWS)})
    assert count_creates(service) == len(ROWS)
    assert len(list(desk.here.glob("*.link"))) == len(ROWS)


def test_a_worker_goes_on_when_postgresql_was_restarted_behind_the_pooler(
    user: Terminal, service: RunningService, direct: str, postgres: Postgres
) -> None:
    with pooled(direct, FEW, "server_login_retry = 1") as address:
        desk = make_desk(user, address)
        assert desk.sealpipe("batch", "run", "vendors.toml", "--only", "v00").code == 0
        with workers(desk, 1):
            wait_until(lambda: count_creates(service) > 3)
            postgres.kill()
            before = count_creates(service)
            postgres.start()
            wait_until(lambda: count_creates(service) > before + 3)


def test_a_pooler_without_a_connection_for_us_is_told(direct: str, user: Terminal) -> None:
    made = make_desk(user, direct)
    for setting in ("query_wait_timeout = 1", "max_client_conn = 1"):
        with (
            pooled(direct, 1, setting) as address,
            psycopg.connect(address, prepare_threshold=None) as other,
        ):
            other.execute("SELECT 1")  # its transaction is open: it has the only connection
            done = made.sealpipe("batch", "list", DATABASE_URL=address)
        assert (done.code, "does not answer" in done.err) == (2, True), done
        assert "pooler" in done.err
