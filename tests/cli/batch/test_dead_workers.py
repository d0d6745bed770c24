"""Workers on PostgreSQL that die or stand still while they hold rows: others go on within 45
seconds, and nothing happens twice, also when the first one wakes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from cli.batch.vendors import ROWS, VENDORS
from sealpipe_rehearsal.running_service import RunningService
from support.faults import holds_before
from support.faulty import Exchange, Faulty, passes
from support.parts import Postgres, run_postgres
from support.terminal import PATIENCE, Terminal

WITHIN = 45.0
"""Seconds from the end of a worker until others go on with its rows."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.mark.parametrize("how", ["killed", "stopped, and woken"])
def test_others_go_on_with_the_rows_of_a_worker_that_is_gone(
    user: Terminal,
    service: RunningService,
    postgres: Postgres,
    how: str,
    record_property: Callable[[str, object], None],
) -> None:
    user.file("vendors.toml", VENDORS.replace('vendors"', f'{how[:7]}"', 1))
    user.file("vendors.csv", ROWS)
    user.environ |= {
        "DATABASE_URL": postgres.address,
        "SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL",
    }
    with Faulty(service.address) as faulty:
        user.environ["SEALPIPE_BASE_URL"] = faulty.base_url
        assert user.sealpipe("batch", "database", "init").code == 0
        # the other row is new, and for the worker
        only = user.sealpipe("batch", "run", "vendors.toml", "--only", "acme")
        assert only.code == 0, only
        faulty.plan(then=holds_creates)
        first = user.start("batch", "worker", "--deadline", "10m")
        wait_until(faulty.committed.is_set, PATIENCE)
        first.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        gone_at = time.monotonic()
        faulty.mend()
        second = user.start("batch", "worker")
        try:
            wait_until(lambda: (user.here / "bolt.link").exists(), PATIENCE)
            seconds = time.monotonic() - gone_at
            first.send_signal(signal.SIGCONT)
            time.sleep(0.5)
        finally:
            for process in (first, second):
                process.terminate()
                process.communicate()
    record_property("figure", f"the row of a worker that was {how} goes on after {seconds:.0f} s")
    assert seconds < WITHIN
    user.environ["SEALPIPE_BASE_URL"] = service.base_url
    requests = user.sealpipe("requests", "list", "--output", "json").json["requests"]
    assert len(requests) == 2
    user.environ["SEALPIPE_BASE_URL"] = faulty.base_url
    told = user.sealpipe("batch", "status", how[:7], "--output", "json")
    assert told.json["counts"] == {"waiting": 2}


def holds_creates(exchange: Exchange) -> None:
    """Each create arrives, and goes no further."""
    (holds_before if exchange.received.method == "POST" else passes)(exchange)


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)
