"""One rate for all workers: never more than the limit in any minute, and nearly all of it used."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import deque
from collections.abc import Sequence

import pytest

from sealpipe.batch.database.rate import (
    Block,
    RateState,
    SharedRate,
    Slot,
    reserve,
    reserve_block,
    slow_down,
)
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.engine.run import MAX_THREADS, choose_threads
from sealpipe.network.rate import MAX_RETRY_AFTER
from unit.batch.stores import MINUTE, Place, make_credential, run_at_once

START = 1_800_000_000 * SECOND


def most_in_a_minute(times: Sequence[int]) -> int:
    """The most calls that any minute has, whenever it begins."""
    window: deque[int] = deque()
    most = 0
    for moment in sorted(times):
        window.append(moment)
        while window[0] <= moment - MINUTE:
            window.popleft()
        most = max(most, len(window))
    return most


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


@pytest.mark.parametrize("limit", [1, 2, 10, 19, 20, 60, 100, 601, 6000])
def test_workers_that_always_have_work_use_the_limit_and_never_exceed_it(limit: int) -> None:
    chance, workers = random.Random(limit), [START] * 4  # noqa: S311 - a test's own times
    state, times = RateState(per_minute=limit), []
    while min(workers) < START + 10 * MINUTE:
        now = min(workers)
        state, at = reserve(state, now)
        times.append(at)
        workers[workers.index(now)] = at + round(chance.random() * MINUTE / limit)
    assert most_in_a_minute(times) <= limit
    whole = [at for at in times if at < START + 10 * MINUTE]
    assert len(whole) >= 0.9 * limit * 10


def test_calls_that_leave_up_to_a_slot_late_do_not_exceed_it() -> None:
    chance, state, times = random.Random(7), RateState(per_minute=100), []  # noqa: S311 - as above
    for _ in range(1000):
        state, at = reserve(state, START)
        times.append(at + round(chance.random() * 2 * state.get_spacing()))
    assert most_in_a_minute(times) <= 100


def test_after_a_pause_nothing_is_caught_up_with() -> None:
    state, _ = reserve(RateState(per_minute=60), START)
    times = []
    for _ in range(100):
        state, at = reserve(state, START + 60 * MINUTE)
        times.append(at)
    assert most_in_a_minute(times) <= 60


def test_without_a_limit_nothing_is_delayed_until_the_first_429() -> None:
    state = RateState()
    for number in range(1000):
        state, at = reserve(state, START + number)
        assert at == START + number
    assert state.calls_per_minute is None
    slowed = slow_down(state, START + SECOND, at, 30.0)
    _, at = reserve(slowed, START + 2 * SECOND)
    assert at == START + 31 * SECOND
    # a thousand calls at once are a burst of two minutes' worth
    assert slowed.calls_per_minute == pytest.approx(500, rel=0.01)


def test_one_429_slows_all_and_those_of_calls_sent_before_it_do_not_count() -> None:
    state, first = reserve(RateState(per_minute=100), START)
    state, second = reserve(state, START)
    before = state.get_spacing()
    state = slow_down(state, second + 1, first, None)
    assert state.get_spacing() == pytest.approx(before / 0.7, rel=0.01)
    again = slow_down(state, second + 2, second, 5.0)
    assert again.get_spacing() == state.get_spacing()
    assert again.slowed_until == second + 2 + 5 * SECOND


@pytest.mark.parametrize("burst", [1, 200])
def test_the_rate_of_a_service_that_tells_none_is_learned(burst: int) -> None:
    limit, tokens, filled_at = 100, float(burst), START
    state, now, allowed, refused = RateState(), START, [], 0
    while now < START + 240 * MINUTE:
        state, now = reserve(state, now)
        tokens, filled_at = min(burst, tokens + (now - filled_at) / MINUTE * limit), now
        if tokens >= 1.0:
            tokens -= 1.0
            allowed.append(now)
        else:
            refused += 1
            state = slow_down(state, now, now, 1.0)
    late = [at for at in allowed if at > START + 120 * MINUTE]
    assert len(late) >= 0.75 * limit * 120
    assert refused <= 0.07 * len(allowed)


def test_an_absurd_retry_after_and_a_clock_that_was_set_back_block_nobody_for_good() -> None:
    state, at = reserve(RateState(per_minute=60), START)
    state = slow_down(state, START, at, 1e12)
    assert state.slowed_until <= START + MAX_RETRY_AFTER * SECOND
    assert slow_down(state, START, at, -5.0).slowed_until == state.slowed_until
    day = 24 * 60 * MINUTE
    _, same = reserve(state, START)
    _, later = reserve(state, START - day)
    assert START < same <= START + MAX_RETRY_AFTER * SECOND
    assert later == same - day


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
    store.rate.slow_down(first, MAX_RETRY_AFTER)
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
    rate.slow_down(slots[-1], 60.0)
    assert rate.acquire().delay > 59
