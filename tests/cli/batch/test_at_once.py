"""The vendor is on the phone: commands, each a process, on both databases, alone and beside others.

A row whose next look is in seven days is collected within two seconds.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex

import psycopg
import pytest
from psycopg import sql

from cli.batch.vendors import ROWS, VENDORS
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.parts import Postgres, run_postgres
from support.stopwatch import stopwatch
from support.terminal import PATIENCE, Terminal, readable

POSTPONE = (
    "UPDATE sealpipe_rows SET due_at = due_at + 7 * 86400 * CAST(1000000 AS BIGINT) "
    "WHERE due_at IS NOT NULL"
)
AT_ONCE = 2.0
"""Seconds of a command, its start included."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


class Desk:
    """A user with a batch of two vendors, in one of the databases; what is due is due in a week."""

    def __init__(self, user: Terminal, service: RunningService, address: str | None) -> None:
        self.user, self._service, self._address = user, service, address
        self.name = "SQLite" if address is None else "PostgreSQL"
        user.file("vendors.toml", VENDORS)
        user.file("vendors.csv", ROWS)
        if address is not None:
            user.environ |= {"DATABASE_URL": address, "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}
            assert user.sealpipe("batch", "database", "init").code == 0
        assert user.sealpipe("batch", "run", "vendors.toml").code == 0
        self.postpone()

    def postpone(self) -> None:
        if self._address is not None:
            with psycopg.connect(self._address, autocommit=True) as shared:
                shared.execute(POSTPONE)
            return
        file = self.user.home / ".local/state/sealpipe/batch/batches.sqlite3"
        own = sqlite3.connect(file, timeout=30, isolation_level=None)
        own.execute(POSTPONE)
        own.close()

    def submit(self, name: str) -> None:
        text = (self.user.here / f"{name}.link").read_text()
        collect_link = next(word for word in text.split() if word.startswith("http"))
        self._service.submitter().submit(collect_link, {"Password": f"canary-of-{name}"})

    def stored(self, name: str) -> str:
        path = self.user.here / f"{name}.secret"
        return path.read_text() if path.exists() else ""

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Another process that works on the batch, once it has begun."""
        process = self.user.start("batch", *words)
        try:
            assert process.stderr is not None
            if words[0] == "worker":
                assert process.stderr.readline().startswith("working on the batches")
            elif self._address is None:
                wait_until(self._is_locked)
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()

    def wait_for_an_idle_run(self) -> None:
        """Wait until the run beside has nothing to write: it has served somebody."""
        assert self.user.sealpipe("batch", "collect", "vendors", "bolt").code == 15

    def _is_locked(self) -> bool:
        lock = self.user.home / ".local/state/sealpipe/batch/batches.lock"
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def time(self, *words: str) -> tuple[float, int, str]:
        """Seconds that a command could run, its exit code, and what it told people."""
        process = self.user.start("batch", *words)
        with stopwatch(process.pid) as read:
            _, told = process.communicate(timeout=PATIENCE)
            return read(), process.returncode, told


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def desk(request: pytest.FixtureRequest, user: Terminal, service: RunningService) -> Desk:
    if request.param == "SQLite":
        return Desk(user, service, None)
    return make_shared_desk(user, service, request.getfixturevalue("postgres"))


def make_shared_desk(user: Terminal, service: RunningService, postgres: Postgres) -> Desk:
    name = f"at_once_{token_hex(8)}"
    with psycopg.connect(postgres.address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return Desk(user, service, postgres.address.replace("/postgres?", f"/{name}?"))


@pytest.fixture
def own(user: Terminal, service: RunningService) -> Desk:
    """With SQLite."""
    return Desk(user, service, None)


BESIDE = {"a worker": ("worker",), "a run": ("run", "vendors.toml", "--for", "10m")}


def test_a_row_is_collected_at_once(
    desk: Desk, record_property: Callable[[str, object], None]
) -> None:
    desk.submit("acme")
    assert desk.user.sealpipe("batch", "run", "vendors.toml").code == 0
    assert desk.stored("acme") == "", "a scheduled run leaves it for a week"
    seconds, code, told = desk.time("collect", "vendors", "acme")
    assert (code, told, desk.stored("acme")) == (0, "acme: collected\n", "canary-of-acme")
    assert seconds < AT_ONCE
    record_property("figure", f"batch collect on {desk.name}, alone: {seconds:.2f} s")
    seconds, code, told = desk.time("collect", "vendors")
    assert (code, told.splitlines()[0]) == (15, "bolt: no submission yet")
    assert seconds < AT_ONCE


@pytest.mark.parametrize("beside", BESIDE)
def test_a_row_is_collected_at_once_while_another_process_works(
    desk: Desk, beside: str, record_property: Callable[[str, object], None]
) -> None:
    with desk.running(*BESIDE[beside]) as process:
        desk.submit("acme")
        seconds, code, told = desk.time("collect", "vendors")
        assert (code, told) == (0, "acme: collected\nbolt: no submission yet\n")
        assert desk.stored("acme") == "canary-of-acme"
        assert seconds < AT_ONCE
        assert process.poll() is None
    record_property("figure", f"batch collect on {desk.name} beside {beside}: {seconds:.2f} s")


@pytest.mark.parametrize("beside", ["alone", *BESIDE])
def test_a_run_that_is_told_collects_at_once(desk: Desk, beside: str) -> None:
    """On SQLite a run beside another one is refused, as ever; a worker's pauses let it in."""
    desk.submit("acme")
    if beside == "alone":
        seconds, code, told = desk.time("run", "--now", "vendors.toml")
        assert (code, told, desk.stored("acme")) == (0, "acme: collected\n", "canary-of-acme")
        assert seconds < AT_ONCE
        return
    with desk.running(*BESIDE[beside]):
        _, code, told = desk.time("run", "--now", "vendors.toml")
        if code == 2:
            assert "another `sealpipe batch run` or `worker` uses the SQLite file" in told
        else:
            assert (code, told, desk.stored("acme")) == (0, "acme: collected\n", "canary-of-acme")


def test_the_process_that_works_is_killed_and_the_command_goes_on(own: Desk) -> None:
    with own.running(*BESIDE["a run"]) as process:
        own.submit("acme")
        own.wait_for_an_idle_run()
        process.send_signal(signal.SIGSTOP)
        command = own.user.start("batch", "collect", "vendors", "acme")
        assert command.stderr is not None
        assert readable([command.stderr], 1.5) == [], "it waits for the process that has the lock"
        process.kill()
        _, told = command.communicate(timeout=PATIENCE)
    assert (command.returncode, told) == (0, "acme: collected\n")
    assert own.stored("acme") == "canary-of-acme"


def test_a_command_that_waits_ends_by_a_signal_and_leaves_nothing(own: Desk) -> None:
    with own.running(*BESIDE["a run"]) as process:
        own.submit("acme")
        own.wait_for_an_idle_run()
        process.send_signal(signal.SIGSTOP)
        command = own.user.start("batch", "collect", "vendors", "acme")
        assert command.stderr is not None
        assert readable([command.stderr], 1.5) == []
        command.send_signal(signal.SIGINT)
        _, told = command.communicate(timeout=PATIENCE)
        assert (command.returncode, told) == (130, "sealpipe: interrupted\n")
        process.send_signal(signal.SIGCONT)
        again = own.user.sealpipe("batch", "collect", "vendors", "acme")
        assert (again.code, again.err) == (0, "acme: collected\n")


# -- at a terminal


@contextmanager
def screen(user: Terminal, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command on a pseudo-terminal of 24 lines, and what reads it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*SEALPIPE, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=user.environ,
        cwd=user.here,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(screen: int, wanted: str) -> str:
    seen, end = "", time.monotonic() + PATIENCE
    while wanted not in seen:
        assert time.monotonic() < end, seen
        if readable([screen], 1):
            try:
                seen += os.read(screen, 65536).decode().replace("\r\n", "\n")
            except OSError:
                break  # the other side is closed
    return seen


def test_a_person_sees_rows_change_in_place_until_ctrl_c(desk: Desk) -> None:
    with screen(desk.user, "batch", "status", "vendors", "--watch") as (process, ours):
        first = read_until(ours, "bolt")
        assert "vendors 2 rows: 2 waiting\n[" in first
        assert "\x1b[" not in first
        desk.submit("acme")
        assert desk.user.sealpipe("batch", "collect", "vendors", "acme").code == 0
        second = read_until(ours, "collected")
        assert "\x1b[4F\x1b[J" in second, "over the four lines from before"
        assert "1 waiting, 1 done" in second
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def test_a_terminal_is_left_when_every_row_is_over(own: Desk) -> None:
    assert own.user.sealpipe("batch", "cancel", "vendors").code == 0
    seen = own.user.on_a_terminal("batch", "status", "vendors", "--watch")
    assert seen.startswith("vendors 2 rows: 2 cancelled\n[####")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_pipe_gets_a_line_for_each_row_that_changes(own: Desk, form: str) -> None:
    watch = own.user.start("batch", "status", "vendors", "--watch", "--output", form)
    assert watch.stdout is not None
    first = [watch.stdout.readline() for _ in range(2)]
    own.submit("acme")
    own.user.sealpipe("batch", "collect", "vendors", "acme")
    changed = watch.stdout.readline()
    own.user.sealpipe("batch", "cancel", "vendors", "bolt")
    rest, told = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, told) == (0, "")
    states = [re.findall("waiting|done|cancelled", line)[0] for line in (*first, changed, rest)]
    assert states == ["waiting", "waiting", "done", "cancelled"]
    assert "canary" not in rest + changed


def test_who_watches_waits_for_a_database_that_was_restarted(
    user: Terminal, service: RunningService, postgres: Postgres
) -> None:
    desk = make_shared_desk(user, service, postgres)
    watch = user.start("batch", "status", "vendors", "--watch")
    assert watch.stdout is not None
    assert watch.stderr is not None
    try:
        assert sorted(watch.stdout.readline()[:4] for _ in ROWS.split()[1:]) == ["acme", "bolt"]
        postgres.kill()
        assert re.search(r"does not answer \(.*\): waiting for it\n", watch.stderr.readline())
        postgres.start()
        assert watch.stderr.readline() == "it answers again\n"
        desk.submit("acme")
        assert user.sealpipe("batch", "collect", "vendors", "acme").code == 0
        assert re.match("acme.*done", watch.stdout.readline())
        assert user.sealpipe("batch", "cancel", "vendors", "bolt").code == 0
        rest, told = watch.communicate(timeout=PATIENCE)
    finally:
        watch.kill()
    assert (watch.returncode, told, rest[:4]) == (0, "", "bolt")


def test_on_a_terminal_the_view_goes_on_below(
    user: Terminal, service: RunningService, postgres: Postgres
) -> None:
    make_shared_desk(user, service, postgres)
    with screen(user, "batch", "status", "vendors", "--watch") as (_, ours):
        read_until(ours, "bolt")
        postgres.kill()
        read_until(ours, "waiting for it\n")
        postgres.start()
        seen = read_until(ours, "bolt")
        assert "it answers again\nvendors 2 rows: 2 waiting\n" in seen
        assert "\x1b[" not in seen


def test_a_run_on_a_terminal_looks_though_nothing_is_due(own: Desk) -> None:
    fresh = own.user.on_a_terminal("batch", "run", "vendors.toml")
    assert "2 waiting" in fresh, "for half a minute after the message nothing is looked at"
    assert re.search(r"\nnext look at \S+Z; with --now at once\n$", fresh)
    own.submit("acme")
    own.submit("bolt")
    seen = own.user.on_a_terminal("batch", "run", "--now", "vendors.toml")
    assert "2 done\n" in seen
    assert "next look" not in seen
