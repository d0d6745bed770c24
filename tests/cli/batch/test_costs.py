"""What a row costs, in commits and calls; and what a run that is stopped gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cli.batch.request_batch import FILE as REQUESTS
from cli.batch.request_batch import MANY
from cli.batch.share_batch import FILE as SHARES
from cli.batch.world import BatchWorld
from sealpipe.batch.database.interface import Transaction
from sealpipe.batch.engine.run import Runner

COMMITS = 4.5
"""For each row: a part of a block of calls; the create, the message, its outcome, and the end."""


@contextmanager
def counting_commits(world: BatchWorld) -> Iterator[Counter[str]]:
    """Count transactions that write."""
    database, counted = world.store._database, Counter[str]()
    plain = database.transaction

    @contextmanager
    def transaction(batch: str = "", **options: Any) -> Iterator[Transaction]:
        counted["commits"] += 1
        with plain(batch, **options) as running:
            yield running

    database.transaction = transaction  # type: ignore[method-assign]
    yield counted
    database.transaction = plain  # type: ignore[method-assign]


@pytest.mark.parametrize("file", [SHARES, REQUESTS], ids=["shares", "requests"])
def test_a_row_is_made_and_delivered_with_few_commits_and_one_call(
    world: BatchWorld, file: str
) -> None:
    path = world.write(file, MANY)
    with counting_commits(world) as counted:
        result = world.run(path)
    assert set(result.counts) <= {"done", "waiting"}
    beside = 6  # the batch, its rows, their digest, and the plan's rate
    assert counted["commits"] <= COMMITS * len(MANY) + beside
    assert result.calls <= len(MANY) + 2, "beside them, the plan, and one list of requests"


def test_a_submission_is_collected_with_few_calls(world: BatchWorld) -> None:
    """Rule D needs the three reads about the DELETE, and its target the check of the key."""
    path = world.write(REQUESTS, MANY[:1])
    world.run(path)
    world.submit(world.code_of(MANY[0]["to"]))
    world.wait(3600)
    assert world.run(path).counts == {"done": 1}
    calls = [(method, path.rpartition("/")[2]) for method, path in world.network.log]
    code = world.all_requests()[0]
    reads = [("GET", "submissions"), ("GET", code)]
    assert calls[-6:] == [*reads, *reads, ("DELETE", code), ("GET", "submissions")]
    assert len(calls) <= 7, "beside them, the plan"


def test_a_run_that_is_stopped_gives_back_what_it_has_not_begun(world: BatchWorld) -> None:
    path = world.write(SHARES, MANY)
    world.run(path, only=["v00"])
    runner = Runner(world.engine(path), threads=1)
    world.loft.before = lambda _: runner.stop()
    assert runner.run().counts == {"done": 2, "new": len(MANY) - 2}
    world.loft.before = lambda _: None
    assert world.run(path).counts == {"done": len(MANY)}
