"""Workers on one PostgreSQL: any number of them, one of them killed, and the database restarted in
the middle.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.batch import pigeons
from cli.batch.request_batch import FILE, MANY, NOTIFY, ROWS
from cli.batch.share_batch import FILE as SHARES
from cli.batch.world import BatchWorld
from sealpipe.api.operation import Operation, Response
from sealpipe.batch.database.opening import open_database, prepare_tables
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.engine import actions, loop
from sealpipe.batch.engine.actions import Outcome, Verb, act
from sealpipe.batch.engine.session import adopt, open_engine, run_batch
from sealpipe.batch.engine.sync import sync
from sealpipe.batch.engine.worker import LONGEST_PAUSE, Worker
from sealpipe.batch.file.reading import read_definition
from sealpipe.errors import StateError
from sealpipe.plugin import Document, Locator
from sealpipe.secret import Secret
from support.parts import ROOT, Postgres, run_postgres
from support.stopwatch import stopwatch
from support.terminal import Terminal

PATIENCE = 60
"""Seconds that a busy machine may need for what an idle one does in two."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def shared_world(tmp_path: Path, postgres: Postgres) -> Iterator[BatchWorld]:
    """A world whose database is PostgreSQL, empty at first."""
    address = Secret(postgres.address)
    database = open_database(tmp_path, address)
    prepare_tables(database)
    database.close()
    made = BatchWorld(tmp_path, database=address)
    yield made
    made.close()


def work(world: BatchWorld, seconds: float, marks: Path | None = None, **options: object) -> None:
    """A worker of its own for so long, with a connection of its own."""
    store = world.open_store()
    store.marks_folder = marks
    try:
        Worker(world.session(), store, **options).run(seconds)
    finally:
        store.close()


def work_until(is_done: Callable[[], bool], world: BatchWorld, **options: object) -> None:
    """One worker after the other, a second each: on a busy machine it takes more of them."""
    deadline = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < deadline
        work(world, 1, **options)


def all_are_out(world: BatchWorld, path: Path) -> Callable[[], bool]:
    """Whether every row has its request and its message, or is blocked."""
    return lambda: {*world.states(path).values()} <= {"waiting", "blocked"}


def test_a_worker_makes_delivers_and_collects(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE, ROWS)
    sync(world.store, read_definition(path))
    work_until(all_are_out(world, path), world)
    assert set(world.states(path).values()) == {"waiting"}
    world.submit(world.code_of("acme.example"))
    world.wait(86400)
    work_until(lambda: world.states(path)["acme"] == "done", world)
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}


def test_workers_share_the_rows_and_do_nothing_twice(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"many"'), MANY)
    sync(world.store, read_definition(path))
    threads = [
        threading.Thread(target=work_until, args=(all_are_out(world, path), world))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(world.states(path).values()) == {"waiting"}
    assert (
        len({message.short_code for _, message in world.loft.messages})
        == len(world.loft.messages)
        == 20
    )


def test_workers_and_runs_tell_each_change_once(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"told"') + NOTIFY, MANY[:6])
    sync(world.store, read_definition(path))
    threads = [threading.Thread(target=work, args=(world, 3)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work_until(all_are_out(world, path), world)
    told = [message.text.reveal() for message in world.messages("team")]
    assert (
        sum(int(number) for text in told for number in re.findall(r"(\d+) rows? delivered", text))
        == 6
    )
    world.run(path)
    assert len(world.messages("team")) == len(told), "a run has nothing more to tell"


def test_runs_and_workers_go_on_with_each_others_rows(shared_world: BatchWorld) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"both"'), MANY)
    run_batch(world.session(), world.store, read_definition(path), only=["v00", "v01"])
    work_until(all_are_out(world, path), world)
    assert set(world.states(path).values()) == {"waiting"}
    assert len(world.loft.messages) == 20


def test_a_database_that_restarts_in_the_middle_loses_nothing(
    shared_world: BatchWorld, postgres: Postgres
) -> None:
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
    work_until(lambda: bool(restarts), world, threads=1)
    world.wait(600)
    work_until(all_are_out(world, path), world)
    states = world.states(path)
    unclear = [key for key, state in states.items() if state == "blocked"]
    assert restarts
    assert set(states.values()) <= {"waiting", "blocked"}
    assert len(unclear) <= 1, "the message that was on its way may have arrived"
    assert (len(world.all_requests()), len(world.loft.messages)) == (20, 20)


@pytest.fixture
def small_role(postgres: Postgres) -> Iterator[str]:
    """A role that may log in, and nothing else."""
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE small LOGIN")
        yield "small"
        connection.execute("DROP OWNED BY small")
        connection.execute("DROP ROLE small")


def test_the_documented_rights_are_enough_and_fewer_end_a_worker(
    shared_world: BatchWorld, postgres: Postgres, small_role: str
) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"small"'), ROWS)
    sync(world.store, read_definition(path))
    page = (ROOT / "docs/how-to/run-a-batch.md").read_text(encoding="utf-8")
    tables, sequences = re.findall(r"^GRANT .*;$", page, re.MULTILINE)
    world.database = Secret(postgres.address.replace("user=tests", f"user={small_role}"))
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(tables.replace("ROLE", small_role))
        with pytest.raises(
            StateError, match=r"refused a statement: InsufficientPrivilege"
        ) as refused:
            work(world, PATIENCE)
        assert "on the sequences" in refused.value.remedy
        connection.execute(sequences.replace("ROLE", small_role))
    work_until(all_are_out(world, path), world)
    assert set(world.states(path).values()) == {"waiting"}


def test_a_worker_stops_when_its_database_is_older_than_what_it_saw(
    shared_world: BatchWorld,
) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"older"'), ROWS)
    world.store.marks_folder = marks = world.folder / "marks"
    world.run(path)
    (file,) = marks.iterdir()
    created_at, adopted_at, changes = json.loads(file.read_bytes())
    work(world, 1, marks)
    file.write_text(json.dumps([created_at, adopted_at, changes + 1000]))
    with pytest.raises(StateError, match="restored from a backup"):
        work(world, 60, marks)
    world.adopt(path)
    work(world, 1, marks)


def test_a_source_that_hangs_does_not_hold_a_worker_that_is_stopped(
    shared_world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shared_world
    monkeypatch.setattr(loop, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(loop, "TICK_SECONDS", 0.1)
    hangs, go_on, is_over = threading.Event(), threading.Event(), threading.Event()
    fetch = pigeons.Seeds.fetch

    def hang(self: pigeons.Seeds, locator: Locator) -> Document:
        hangs.set()
        assert go_on.wait(PATIENCE)
        is_over.set()
        return fetch(self, locator)

    monkeypatch.setattr(pigeons.Seeds, "fetch", hang)
    path = world.write(SHARES.replace('"keys"', '"hangs"'), ROWS[:1])
    sync(world.store, read_definition(path))
    store = world.open_store()
    worker = Worker(world.session(), store, threads=1)
    thread = threading.Thread(target=worker.run, args=(PATIENCE,), daemon=True)
    thread.start()
    assert hangs.wait(PATIENCE)
    worker.stop()
    thread.join(PATIENCE / 4)
    assert not thread.is_alive()
    go_on.set()
    assert is_over.wait(PATIENCE)
    time.sleep(0.5)
    assert ("POST", "/shares") not in world.network.log, "its thread begins nothing any more"
    store.close()


def test_a_worker_ends_when_its_database_was_restored_from_before_a_rekey(
    shared_world: BatchWorld, postgres: Postgres
) -> None:
    """It says so; the next one has used no other data key, and goes on."""
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"rekeyed"'), ROWS)
    sync(world.store, read_definition(path))
    store = world.open_store()
    session = world.session()
    tables = [f"sealpipe_{name}" for name in ("data_keys", "batches", "rows", "effects", "history")]
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE old_{table} AS TABLE {table}".encode())
        world.store.rekey(world.engine(path).batch)
        Worker(session, store, threads=1).run(1)
        for table in tables:
            connection.execute(f"TRUNCATE {table}".encode())
            connection.execute(f"INSERT INTO {table} TABLE old_{table}".encode())
            connection.execute(f"DROP TABLE old_{table}".encode())
    sent = len(world.loft.messages)
    with pytest.raises(StateError, match="older data key than this process has used"):
        Worker(session, store, threads=1).run(PATIENCE)
    assert len(world.loft.messages) == sent
    store.close()
    work_until(all_are_out(world, path), world)


def test_a_worker_knows_a_batch_that_was_purged_and_begins_anew(
    shared_world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shared_world
    monkeypatch.setattr(loop, "TICK_SECONDS", 0.1)
    store = world.open_store()
    worker = Worker(world.session(), store, threads=1)
    thread = threading.Thread(target=worker.run, args=(PATIENCE,))
    path = world.write(FILE.replace('"vendors"', '"anew"'), ROWS[:1])
    sync(world.store, read_definition(path))
    thread.start()
    wait_for(lambda: world.states(path) == {"acme": "waiting"})
    world.act(path, "cancel", "acme")
    world.store.purge_batch(world.engine(path).batch)
    path = world.write(
        FILE.replace('"vendors"', '"anew"').replace("Access to", "Account in"), ROWS[1:2]
    )
    sync(world.store, read_definition(path))
    wait_for(lambda: world.states(path) == {"bolt": "waiting"})
    worker.stop()  # its loop wakes up for the next sweep
    thread.join()
    store.close()
    titles = [
        row["title"]
        for row in world.service.database.rows("SELECT title FROM requests ORDER BY rowid", {})
    ]
    assert [title.partition(" ")[0] for title in titles] == ["Access", "Account"]


def wait_for(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def be_dead(address: str) -> None:
    """Let every worker be one that has not given a sign of life for ten minutes."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '10 minutes'"
        )


class Machine:
    """A machine with the same database, and a state folder of its own."""

    def __init__(self, world: BatchWorld, name: str) -> None:
        assert world.database is not None
        self.address = world.database.reveal()
        self.store = world.open_store()
        self.store.ledger_folder = world.folder / name / "requests"
        self.session = world.session()
        world.network.before, world.network.after = self.send, self.take_answer
        self.calls: list[str] = []
        self.moment, self.interrupt = ("", 0), lambda: None

    def send(self, operation: Operation[Any]) -> None:
        self.calls.append(operation.method)
        if self.moment == ("before", len(self.calls)):
            self.interrupt()

    def take_answer(self, _: Operation[Any], response: Response) -> Response:
        if self.moment == ("after", len(self.calls)):
            self.interrupt()
        return response

    def do(self, verb: str, path: Path) -> None:
        definition = read_definition(path)
        if verb == "run":
            run_batch(self.session, self.store, definition, threads=1)
        elif verb == "adopt":
            adopt(self.session, self.store, definition)
        else:
            engine = open_engine(self.session, self.store, definition.name)
            act(engine, verb, ["acme"])  # type: ignore[arg-type]

    def take_row(self, verb: str, path: Path) -> None:
        """Take the row of a machine that is thought dead."""
        be_dead(self.address)
        self.do(verb, path)


def race(world: BatchWorld, verb: str, when: str = "", call: int = 0) -> list[str]:
    """One machine collects a submission; before or after a call of it, another takes its row.

    The calls of the one.
    """
    name = f"{verb}{when}{call}"
    path = world.write(FILE.replace("vendors", name), ROWS[:1])
    world.run(path)
    code = world.code_of("acme.example")
    world.submit(code)
    world.wait(3600)
    slow, fast = Machine(world, "slow"), Machine(world, "fast")
    slow.moment, slow.interrupt = (when, call), partial(fast.take_row, verb, path)
    slow.do("run", path)
    world.wait(2 * 3600)
    last = Machine(world, "slow")
    last.do("run", path)
    calls = [*slow.calls, *fast.calls, *last.calls]
    assert (calls.count("DELETE"), code in world.all_requests()) == (1, True), (
        name,
        world.history(path, "acme"),
    )
    assert world.loft.puts.count(f"{name}/acme") <= 1
    for machine in (slow, fast, last):
        machine.store.close()
    return slow.calls


@pytest.mark.parametrize("verb", ["run", "cancel", "reissue", "adopt"])
def test_two_machines_send_one_delete(shared_world: BatchWorld, verb: str) -> None:
    """With two, what was submitted would be gone.

    What one machine notes in its files, the other does not see.
    """
    number = race(shared_world, verb).index("DELETE")
    # It knows that the request is active, and is about to note a DELETE.
    race(shared_world, verb, "after", number)
    race(shared_world, verb, "before", number + 1)  # it has noted it


@pytest.mark.parametrize("verb", ["cancel", "reissue"])
def test_a_worker_does_what_was_asked_for_a_row_that_is_gone(
    shared_world: BatchWorld, verb: Verb
) -> None:
    """The command was killed when it had recorded it; meanwhile the file lost the row."""
    world = shared_world
    path = world.write(FILE.replace("vendors", f"gone-{verb}"), ROWS)
    world.run(path)

    def kill(_: object) -> None:
        raise KeyboardInterrupt

    world.before = kill  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.act(path, verb, "acme")
    del world.before
    world.write(path.read_text(), ROWS[1:])
    world.wait(600)
    assert sync(world.store, read_definition(path)).gone == ()
    goal = {"cancel": "cancelled", "reissue": "waiting"}[verb]
    work_until(lambda: world.states(path)["acme"] == goal, world)
    assert len(world.active_requests()) == {"cancel": 2, "reissue": 3}[verb]


def test_a_row_that_a_worker_holds_is_left_to_it_and_then_cancelled(
    shared_world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "HELD_PATIENCE", 0)
    world = shared_world
    path = world.write(FILE.replace("vendors", "held"), ROWS[:1])
    sync(world.store, read_definition(path))
    told: list[Outcome] = []

    def cancel(_: str) -> None:
        machine = Machine(world, "another")
        told.extend(act(open_engine(machine.session, machine.store, "held"), "cancel", ["acme"]))
        machine.store.close()

    world.loft.before = cancel
    work_until(all_are_out(world, path), world, threads=1)
    world.loft.before = lambda _: None
    assert [outcome.problem for outcome in told] == [
        "it is sending, and another worker has it: nothing was done"
    ]
    world.write(path.read_text(), ROWS[1:2])
    sync(world.store, read_definition(path))
    (outcome,) = world.act(path, "cancel", "acme")
    assert (outcome.problem, world.states(path)["acme"], world.active_requests()) == (
        "",
        "cancelled",
        [],
    )


def list_jobs(postgres: Postgres) -> list[tuple[Any, ...]]:
    with psycopg.connect(postgres.address) as connection:
        return connection.execute(
            "SELECT queue_name, status, scheduled_at FROM procrastinate_jobs"
        ).fetchall()


def test_each_row_has_one_job_which_waits_until_it_is_due(
    shared_world: BatchWorld, postgres: Postgres
) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"one-job"'), MANY)
    sync(world.store, read_definition(path))
    queue, numbers = f"sealpipe-{world.engine(path).batch.id}", list[int]()

    def count(_: str) -> None:
        numbers.append(sum(name == queue for name, _, _ in list_jobs(postgres)))

    world.loft.after = count
    work_until(all_are_out(world, path), world, threads=2)
    assert set(world.states(path).values()) == {"waiting"}
    jobs = [moment for name, _, moment in list_jobs(postgres) if name == queue]
    assert {*numbers, len(jobs)} == {len(MANY)}
    due = sorted(row.due_at for row in world.rows(path).values() if row.due_at is not None)
    scheduled = sorted(round(moment.timestamp() * SECOND) for moment in jobs)
    assert scheduled == due, "the database's clock decides"
    world.store.purge_batch(world.engine(path).batch)
    assert queue not in [name for name, _, _ in list_jobs(postgres)]


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
    work_until(all_are_out(world, path), world, threads=2)
    assert len(seen) == 3, world.progress(path, "acme").problem
    for word in ("canary", "acme", "example", "CRM", world.code_of("acme.example")):
        assert word not in "".join(seen)


def test_a_job_that_somebody_added_controls_nothing(
    shared_world: BatchWorld, postgres: Postgres, capfd: pytest.CaptureFixture[str]
) -> None:
    world = shared_world
    path = world.write(FILE.replace('"vendors"', '"forged"'), ROWS)
    sync(world.store, read_definition(path))
    queue = f"sealpipe-{world.engine(path).batch.id}"
    forged = ("null", "[]", '"canary"', '{"batch": 1}', '{"batch": "x", "row": "canary"}')
    with psycopg.connect(postgres.address) as connection:
        for arguments in forged:
            connection.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES (%s, %s, %s)",
                (queue, "canary\n::error::forged\x1b[31m", arguments),
            )
    work_until(all_are_out(world, path), world, threads=1)
    assert set(world.states(path).values()) == {"waiting"}
    assert "".join(capfd.readouterr()) == ""
    assert len([name for name, _, _ in list_jobs(postgres) if name == queue]) == len(ROWS)


IMPATIENT = """
from sealpipe.batch.engine import loop
loop.OUTAGE_SECONDS = 3
from sealpipe.__main__ import main
main()
"""


@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
def test_a_worker_says_in_one_line_that_postgresql_does_not_answer(
    user: Terminal, *, is_busy: bool
) -> None:
    """And nothing that its libraries log, which is tracebacks. Afterwards another one goes on.

    It waits once, for three seconds here, whatever else wants the database.
    """
    with run_postgres() as server:
        user.environ |= {
            "DATABASE_URL": server.address,
            "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL",
        }
        rows = ", ".join(f'{{name = "v{number}"}}' for number in range(60))
        user.file(
            "vendors.toml",
            f'name = "vendors"\nkind = "request"\nkey = "name"\nrow = [{rows}]\n{SENDING}',
        )
        assert user.sealpipe("batch", "database", "init").code == 0
        assert user.sealpipe("batch", "run", "vendors.toml", "--only", "v0").code == 0
        process = subprocess.Popen(
            [sys.executable, "-c", IMPATIENT, "batch", "worker", "--output", "json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=user.environ,
            cwd=user.here,
            text=True,
        )
        wait_for(lambda: len(list(user.here.glob("*.link"))) >= (3 if is_busy else 60))
        server.kill()
        with stopwatch(process.pid) as passed:
            out, told = process.communicate(timeout=2 * PATIENCE)
            assert passed() < LONGEST_PAUSE + 3 + 2.5
        assert out == ""
        lines = [
            line
            for line in told.splitlines()
            if not re.fullmatch(r"vendors: v\d+: (created|delivered)", line)
        ]
        said = f"the PostgreSQL database postgres at {server.folder}"
        assert lines[0] == f"working on the batches in {said}"
        error = json.loads("".join(lines[1:]))["error"]
        assert error["message"].startswith(f"{said} does not answer (")
        assert process.returncode == 2
        server.start()
        assert user.sealpipe("batch", "worker", "--for", "1s").code == 0


SENDING = """
[request]
ask = ["Password"]
send = ["file:{name}.link"]
"""
