"""A machine that allows so many rows an hour: what is over it waits, whoever runs, and is told."""

from __future__ import annotations

import pytest

from cli.batch.pigeons import DOWN
from cli.batch.request_batch import FILE, MANY
from cli.batch.rounds import do_round, make_worker
from cli.batch.vendors import ROWS as VENDOR_ROWS
from cli.batch.vendors import VENDORS, count_creates
from cli.batch.world import UNREACHABLE, BatchWorld, fail_with
from sealpipe_rehearsal.running_service import RunningService
from support.distributions import Machine
from support.terminal import Terminal

HOUR = 3600.0


@pytest.fixture
def limited(world: BatchWorld) -> BatchWorld:
    world.rows_per_hour = 3
    return world


def test_rows_over_the_limit_come_in_the_next_hours(limited: BatchWorld) -> None:
    path = limited.write(FILE, MANY[:8])
    first = limited.run(path)
    assert (first.exit_code, first.counts) == (0, {"new": 5, "waiting": 3})
    (warning,) = first.warnings
    assert warning.startswith("5 rows are left for later, from ")
    assert warning.endswith(": this machine allows 3 an hour")
    limited.wait(HOUR - 60)
    assert limited.run(path).warnings == ()
    assert len(limited.all_requests()) == 3
    limited.wait(120)
    assert limited.run(path).counts == {"new": 2, "waiting": 6}
    limited.wait(HOUR + 60)
    assert limited.run(path).counts == {"waiting": 8}


def test_all_batches_of_a_database_count_together(limited: BatchWorld) -> None:
    limited.run(limited.write(FILE, MANY[:2]))
    other = limited.write(
        FILE.replace('"vendors"', '"others"').replace("nest:vendors", "nest:others"), MANY[2:5]
    )
    assert limited.run(other).counts == {"new": 2, "waiting": 1}
    assert len(limited.all_requests()) == 3


def test_what_failed_takes_no_place(limited: BatchWorld) -> None:
    path = limited.write(FILE, MANY[:4])
    limited.before = fail_with(UNREACHABLE, "POST")  # type: ignore[method-assign]
    limited.run(path, only=["v00"])
    assert (limited.states(path)["v00"], limited.all_requests()) == ("failed", [])
    del limited.before
    limited.run(path, only=["v01", "v02", "v03"])
    assert len(limited.all_requests()) == 3


def test_a_message_that_is_sent_again_is_no_new_row(limited: BatchWorld) -> None:
    path = limited.write(FILE, MANY[:3])
    limited.loft.down["*"] = DOWN
    limited.run(path)
    limited.loft.down.clear()
    assert limited.run(path).counts == {"waiting": 3}


def test_a_plan_says_which_rows_are_over_the_limit(limited: BatchWorld) -> None:
    path = limited.write(FILE, MANY[:5])
    approved = limited.plan(path)
    told = [row.detail for row in approved.rows]
    assert told == ["", "", "", *["later: this machine allows 3 an hour"] * 2]
    limited.run(path, approved=approved)
    assert len(limited.all_requests()) == 3
    assert sum(bool(row.detail) for row in limited.plan(path).rows) == 2


def test_a_worker_says_once_what_it_leaves_for_later(limited: BatchWorld) -> None:
    limited.rows_per_hour = None
    path = limited.write(FILE, MANY[:5])
    limited.run(path, only=["v00"])
    limited.rows_per_hour = 3
    told: list[str] = []
    worker = make_worker(limited, told)
    do_round(worker)
    do_round(worker)
    assert len(limited.all_requests()) == 3
    assert told.count("vendors: [limit]: postponed") == 1


def test_a_row_that_is_reissued_by_hand_counts_as_well(limited: BatchWorld) -> None:
    path = limited.write(FILE, MANY[:1])
    limited.run(path)
    limited.wait(2 * HOUR)
    limited.run(limited.write(FILE, MANY[:4]), threads=4)
    assert len(limited.all_requests()) == 4
    limited.act(path, "reissue", "v00")
    assert (limited.states(path)["v00"], len(limited.all_requests())) == ("new", 4)
    limited.wait(HOUR + 60)
    assert limited.run(path).counts == {"waiting": 4}


def test_the_machines_file_has_the_limit(user: Terminal, service: RunningService) -> None:
    machine = Machine(user).enforce("[enforce.batch]\nmost_rows_per_hour = 1\n")
    user.file("vendors.toml", VENDORS)
    user.file("vendors.csv", VENDOR_ROWS)
    planned = machine.sealpipe("batch", "plan", "vendors.toml")
    assert planned.out.splitlines() == [
        "create\tacme",
        "create\tbolt\tlater: this machine allows 1 an hour",
    ]
    done = machine.sealpipe("batch", "run", "vendors.toml", "--detailed-exit-code")
    assert (done.code, done.out) == (15, "vendors\t2 rows: 1 new, 1 waiting\n")
    assert done.err.count("1 row is left for later") == 1
    assert count_creates(service) == 1


@pytest.mark.parametrize(
    "table", ["most_rows_per_hour = 0", "most_rows = 5", "most_rows_per_hour = true", ""]
)
def test_a_limit_that_cannot_be_read_stops_all(
    user: Terminal, service: RunningService, table: str
) -> None:
    done = Machine(user).enforce(f"[enforce.batch]\n{table}\n").sealpipe("batch", "list")
    assert (done.code, done.out) == (2, ""), done
    assert "enforce.batch does not set most_rows_per_hour" in done.err
    assert service.seen() == []
