"""One rate for all workers: never more than the limit in any minute, and nearly all of it used."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from sealpipe.api.operation import Failure
from sealpipe.batch.database.rate import Block, SharedRate, Slot, reserve_block
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.engine.loop import MAX_THREADS, choose_threads
from sealpipe.network.rate import MAX_RETRY_AFTER, RateState
from support.rates import MINUTE, most_in_a_minute
from unit.batch.stores import Place, make_credential, run_at_once

START = 1_800_000_000 * SECOND


@pytest.mark.parametrize("limit", [1, 59, 60, 100, 180, 601, 900, 6_000, 1_000_000])
def test_as_many_threads_as_keep_the_rate_busy(limit: int) -> None:
    # Of a thread whose calls take half a second.
    threads, calls_a_minute = (
        choose_threads(limit),
        120,
    )
    assert 1 <= threads <= MAX_THREADS
    assert threads * calls_a_minute >= limit or threads == MAX_THREADS
    assert (threads - 2) * calls_a_minute < limit
    assert choose_threads(limit / 2) <= threads
    assert 1 <= choose_threads(None) <= MAX_THREADS


def test_a_429_of_one_worker_slows_those_who_sleep_in_another(place: Place) -> None:
    waits, refused = place.store().rate, place.store().rate
    waits.set_limit(120)
    turn = waits.acquire().at
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        if not slept:
            refused.slow_down(turn, 3.0)
        slept.append(seconds)
        time.sleep(seconds)

    found = waits.wait(60.0, sleep)
    assert isinstance(found, int)
    assert found >= refused.read().slowed_until >= turn + 3 * SECOND
    assert len(slept) == 2


def test_a_call_that_would_be_too_late_reserves_nothing(place: Place) -> None:
    rate = place.store().rate
    rate.set_limit(60)
    rate.acquire()
    before = rate.read()
    refusal = rate.wait(1.0, lambda _: pytest.fail("it waits"))
    assert isinstance(refusal, Failure)
    assert refusal.retry_after == pytest.approx(1.05, abs=0.1)
    assert not refusal.sent
    assert rate.read() == before


def test_threads_and_workers_share_one_rate(place: Place) -> None:
    stores = [place.store() for _ in range(2)]
    stores[0].rate.set_limit(300)
    slots: list[Slot] = []
    run_at_once(
        *(
            lambda rate=store.rate: slots.extend(rate.acquire() for _ in range(50))
            for store in stores * 2
        )
    )  # type: ignore[misc]
    times = sorted(slot.at for slot in slots)
    assert len(set(times)) == 200
    assert most_in_a_minute(times) <= 300
    # a minute's calls are spread over the next minutes, at no less than nine tenths of the limit
    assert (times[-1] - times[0]) <= 200 * MINUTE / (0.9 * 300)
    assert all(slot.delay >= 0 for slot in slots)


_ACQUIRING = """
import sys
from pathlib import Path
from sealpipe.api.operation import Credential
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.secret import Secret
kind, where, credential = sys.argv[1:]
folder, address = (where, None) if kind == "sqlite" else ("/", Secret(where))
database = open_database(Path(folder), address)
rate = open_store(database, Credential.parse(credential), "https://api.example/v1").rate
sys.stdin.read(1)
for _ in range(50):
    print(rate.acquire().at, flush=True)
"""


def test_processes_share_one_rate(place: Place) -> None:
    place.store().rate.set_limit(300)
    words = [sys.executable, "-P", "-c", _ACQUIRING, *place.words, place.api_key]
    workers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = [worker.communicate("x", timeout=60)[0] for worker in workers]
    times = sorted(int(line) for output in outputs for line in output.split())
    assert len(set(times)) == 200
    assert most_in_a_minute(times) <= 300
    assert times[-1] - times[0] <= 200 * MINUTE / (0.9 * 300)


def test_a_slot_and_what_is_known_are_in_the_database(place: Place) -> None:
    store = place.store()
    assert store.rate.read() == RateState()
    first = store.rate.acquire()
    store.rate.set_limit(60)
    store.rate.slow_down(first.at, MAX_RETRY_AFTER)
    found = place.store().rate.read()
    assert (found.per_minute, found.calls_per_minute) == (
        60,
        pytest.approx(60 * 0.95 * 0.7, rel=0.01),
    )
    second = place.store().rate.acquire()
    assert second.at == found.slowed_until > first.at + 200 * SECOND
    assert 0 < second.delay <= MAX_RETRY_AFTER
    assert place.store(make_credential()).rate.read() == RateState()
    assert isinstance(store.rate, SharedRate)


@pytest.mark.parametrize("limit", [100, 601, 6000, 20_000, None])
def test_blocks_of_fast_callers_never_exceed_the_limit(limit: int | None) -> None:
    """Four workers that call as soon as they may, each a little late; now and then one pauses."""
    chance, state = random.Random(limit), RateState(per_minute=limit)  # noqa: S311
    blocks, free_at, times, reservations = [Block() for _ in range(4)], [START] * 4, [], 0
    for _ in range(3 * (limit or 6000)):
        worker = free_at.index(min(free_at))
        now = free_at[worker]
        at = blocks[worker].take(now)
        if at is None:
            state, reserved = reserve_block(state, now, blocks[worker].choose_size(now))
            at, reservations = blocks[worker].fill(now, reserved), reservations + 1
        assert at >= now - SECOND // 2
        times.append(max(now, at))
        free_at[worker] = (
            times[-1] + chance.randrange(4000) + (SECOND if chance.random() < 0.001 else 0)
        )
    if limit is not None:
        assert most_in_a_minute(times) <= limit
        assert len(times) / (max(times) - START) * MINUTE >= 0.9 * limit
    if limit is None or limit > 6000:
        assert reservations < len(times) / 4
    elif limit <= 601:
        assert reservations == len(times), "slow calls are reserved one by one"


def test_reserved_calls_that_are_too_old_are_given_up() -> None:
    block = Block()
    first = block.fill(START, [START, START + 10, START + 20])
    assert (first, block.take(START + 5)) == (START, START + 10)
    assert block.take(START + SECOND) is None
    block.fill(START, [START, START + 10])
    assert block.take(START - SECOND) is None, "the clock was set back"


def test_a_429_gives_up_what_was_reserved(place: Place) -> None:
    rate = place.store().rate
    rate.set_limit(60_000)
    slots = [rate.acquire() for _ in range(20)]
    assert len({slot.at for slot in slots}) == 20
    rate.slow_down(slots[-1].at, 60.0)
    assert rate.acquire().delay > 59
