"""When the next request may be sent: never more than the limit in any minute, and nearly all of it
used; slower after each 429.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sealpipe.network.rate import MAX_RETRY_AFTER, MIN_RATE, SECOND, RateState
from support.rates import MINUTE, most_in_a_minute

START = 1_800_000_000 * SECOND

LIMITS = some.none() | some.integers(1, 100_000)
STEPS = some.lists(
    some.tuples(
        some.integers(0, 200 * SECOND),
        some.sampled_from(["reserve"] * 4 + ["refuse the latest", "refuse an old one"]),
        some.none() | some.floats(-10, 1e6),
    ),
    max_size=60,
)
"""What happens: microseconds later a request is reserved, or one gets a 429 with a Retry-After."""


def follow(
    limit: int | None, steps: Sequence[tuple[int, str, float | None]], start: int
) -> list[tuple[int, RateState, int]]:
    """Each step's time, its state, and the time of the latest request."""
    state, now, at = RateState(per_minute=limit), start, start
    first, seen = at, []
    for later, what, retry_after in steps:
        now += later
        if what == "reserve":
            state, at = state.reserve(now)
        else:
            sent_at = at if what == "refuse the latest" else first
            state = state.slow_down(now, retry_after, sent_at)
        seen.append((now, state, at))
    return seen


@given(LIMITS, STEPS)
def test_requests_are_never_early_never_closer_than_the_spacing_and_never_out_of_order(
    limit: int | None, steps: list[tuple[int, str, float | None]]
) -> None:
    before, latest = RateState(per_minute=limit), 0
    for (now, state, at), (_, what, _) in zip(follow(limit, steps, START), steps, strict=True):
        if what == "reserve":
            assert at >= max(now, before.slowed_until, before.next_at)
            assert at >= latest + (state.get_spacing() if latest else 0)
            latest = at
        before = state


@given(LIMITS, STEPS)
def test_a_429_makes_no_request_earlier_and_blocks_nobody_for_good(
    limit: int | None, steps: list[tuple[int, str, float | None]]
) -> None:
    before = RateState(per_minute=limit)
    for (now, state, _), (_, what, _) in zip(follow(limit, steps, START), steps, strict=True):
        if what != "reserve":
            assert state.reserve(now)[1] >= before.reserve(now)[1]
            assert state.get_spacing() >= before.get_spacing()
            assert state.slowed_until <= max(before.slowed_until, now + MAX_RETRY_AFTER * SECOND)
            longest = max(SECOND / MIN_RATE, RateState(per_minute=limit).get_spacing())
            assert state.get_spacing() <= longest
        before = state


@given(LIMITS, STEPS, some.integers(1, START))
def test_the_zero_of_the_clock_does_not_matter(
    limit: int | None, steps: list[tuple[int, str, float | None]], start: int
) -> None:
    def leave(start: int) -> list[int]:
        return [at - start for _, _, at in follow(limit, steps, start)]

    assert leave(start + 200 * SECOND) == leave(START)


def test_refusals_slow_down_to_half_a_request_a_second_and_requests_speed_up_to_no_limit() -> None:
    state, now = RateState(), START
    for _ in range(50):
        state, now = state.reserve(now)
        state = state.slow_down(now, None, now)
    assert state.get_spacing() == 2 * SECOND
    spacings = []
    for _ in range(400):
        state, now = state.reserve(now)
        spacings.append(state.get_spacing())
    assert spacings == sorted(spacings, reverse=True)
    assert spacings[-1] == 0
    assert min(filter(None, spacings)) < 1.1 * SECOND / 100


def test_after_an_idle_while_nothing_is_learned_any_more_but_a_long_hold_is_none() -> None:
    state, at = RateState().reserve(START)
    state = state.slow_down(at, 300.0, at)
    assert state.reserve(START + 301 * SECOND)[0].spacing is not None
    assert state.reserve(START + 421 * SECOND)[0].spacing is None


@pytest.mark.parametrize("limit", [1, 2, 10, 19, 20, 60, 100, 601, 6000])
def test_workers_that_always_have_work_use_the_limit_and_never_exceed_it(limit: int) -> None:
    chance, workers = random.Random(limit), [START] * 4  # noqa: S311 - a test's own times
    state, times = RateState(per_minute=limit), []
    while min(workers) < START + 10 * MINUTE:
        now = min(workers)
        state, at = state.reserve(now)
        times.append(at)
        workers[workers.index(now)] = at + round(chance.random() * MINUTE / limit)
    assert most_in_a_minute(times) <= limit
    whole = [at for at in times if at < START + 10 * MINUTE]
    assert len(whole) >= 0.9 * limit * 10


def test_calls_that_leave_up_to_a_slot_late_do_not_exceed_it() -> None:
    chance, state, times = random.Random(7), RateState(per_minute=100), []  # noqa: S311 - as above
    for _ in range(1000):
        state, at = state.reserve(START)
        times.append(at + round(chance.random() * 2 * state.get_spacing()))
    assert most_in_a_minute(times) <= 100


def test_after_a_pause_nothing_is_caught_up_with() -> None:
    state, _ = RateState(per_minute=60).reserve(START)
    times = []
    for _ in range(100):
        state, at = state.reserve(START + 60 * MINUTE)
        times.append(at)
    assert most_in_a_minute(times) <= 60


def test_without_a_limit_nothing_is_delayed_until_the_first_429() -> None:
    state = RateState()
    for number in range(1000):
        state, at = state.reserve(START + number)
        assert at == START + number
    assert state.calls_per_minute is None
    slowed = state.slow_down(START + SECOND, 30.0, at)
    _, at = slowed.reserve(START + 2 * SECOND)
    assert at == START + 31 * SECOND
    # a thousand calls at once are a burst of two minutes' worth
    assert slowed.calls_per_minute == pytest.approx(500, rel=0.01)


def test_one_429_slows_all_and_those_of_calls_sent_before_it_do_not_count() -> None:
    state, first = RateState(per_minute=100).reserve(START)
    state, second = state.reserve(START)
    before = state.get_spacing()
    state = state.slow_down(second + 1, None, first)
    assert state.get_spacing() == pytest.approx(before / 0.7, rel=0.01)
    again = state.slow_down(second + 2, 5.0, second)
    assert again.get_spacing() == state.get_spacing()
    assert again.slowed_until == second + 2 + 5 * SECOND


@pytest.mark.parametrize("burst", [1, 200])
def test_the_rate_of_a_service_that_tells_none_is_learned(burst: int) -> None:
    limit, tokens, filled_at = 100, float(burst), START
    state, now, allowed, refused = RateState(), START, [], 0
    while now < START + 240 * MINUTE:
        state, now = state.reserve(now)
        tokens, filled_at = min(burst, tokens + (now - filled_at) / MINUTE * limit), now
        if tokens >= 1.0:
            tokens -= 1.0
            allowed.append(now)
        else:
            refused += 1
            state = state.slow_down(now, 1.0, now)
    late = [at for at in allowed if at > START + 120 * MINUTE]
    assert len(late) >= 0.75 * limit * 120
    assert refused <= 0.07 * len(allowed)


def test_an_absurd_retry_after_and_a_clock_that_was_set_back_block_nobody_for_good() -> None:
    state, at = RateState(per_minute=60).reserve(START)
    state = state.slow_down(START, 1e12, at)
    assert state.slowed_until <= START + MAX_RETRY_AFTER * SECOND
    assert state.slow_down(START, -5.0, at).slowed_until == state.slowed_until
    day = 24 * 60 * MINUTE
    _, same = state.reserve(START)
    _, later = state.reserve(START - day)
    assert START < same <= START + MAX_RETRY_AFTER * SECOND
    assert later == same - day


def test_a_429_also_slows_down_after_the_clock_was_set_back() -> None:
    state, at = RateState(per_minute=60).reserve(START)
    state = state.slow_down(START + SECOND, None, at)
    spacing, earlier = state.get_spacing(), START - 60 * MINUTE
    state, at = state.reserve(earlier)
    assert state.slow_down(at + SECOND, None, at).get_spacing() > spacing


@pytest.mark.parametrize("announced", [None, 10_000, 1_000_000])
def test_a_limit_that_is_not_announced_is_learned_also_if_a_higher_one_is(
    announced: int | None,
) -> None:
    """A service behind a proxy that limits, or whose limit was set meanwhile."""
    state, now, used_until, refused = RateState(per_minute=announced), START, START - 2 * MINUTE, 0
    while now < START + 5 * MINUTE:
        state, at = state.reserve(now)
        now = max(now, at) + SECOND // 100
        # 100 a minute, in a burst of up to two minutes' worth
        used_until = max(used_until, now - 2 * MINUTE)
        if used_until + MINUTE // 100 <= now:
            used_until += MINUTE // 100
        else:
            refused += 1
            state = state.slow_down(now, 1.0, at)
    assert refused < 50
    assert state.spacing is not None
