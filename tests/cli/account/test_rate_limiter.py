"""How one client's requests leave: freely until the first 429, and then so that hardly another one
follows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.account.simulated import Clock, Outcome, Service, simulate
from sealpipe import AsyncClient, Client, ConnectError, Field, RateLimitError
from sealpipe.api.operation import Failure
from sealpipe.network import rate
from sealpipe.network.rate import SECOND, refuse_delay
from sealpipe.network.rate_limiter import RateLimiter
from sealpipe.network.service_network import MAX_CONNECTIONS
from sealpipe.session import send_in_turn
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.faults import says
from support.faulty import Faulty, passes
from support.stopwatch import stopwatch


class Line:
    """Some requests that ask one limiter, and the clock that they ask it by."""

    def __init__(self, before: int = 0) -> None:
        self.clock = Clock()
        self.limiter = RateLimiter(self.clock)
        for _ in range(before):
            self.leave()

    def ask(self, ticket: object) -> float:
        """The seconds that a request has to wait; 0.0: it leaves."""
        return self.limiter.reserve(ticket)[1] / SECOND

    def leave(self) -> int:
        """Wait as long as it takes, and leave."""
        ticket = object()
        while pause := self.ask(ticket):
            self.clock.now += pause
        return self.clock()

    def refuse(self, after: float | None = None) -> None:
        """One leaves, and is refused."""
        self.limiter.slow_down(self.leave(), after)

    def pause(self) -> float:
        """What the next in line would have to wait; it steps out again."""
        ticket = object()
        pause = self.ask(ticket)
        self.limiter.cancel(ticket)
        return pause


def test_nothing_is_held_back_while_nothing_was_refused() -> None:
    line = Line()
    assert [line.ask(object()) for _ in range(500)] == 500 * [0.0]


def test_a_refusal_holds_everybody_back_for_as_long_as_it_says() -> None:
    line = Line()
    line.refuse(7.0)
    assert line.pause() == pytest.approx(7.0)
    line.clock.now += 6.5
    line.leave()
    assert line.clock.now == pytest.approx(Clock().now + 7.0)


def test_after_a_refusal_requests_leave_one_by_one_and_first_come_is_first_served() -> None:
    line = Line(before=240)
    line.refuse(3.0)
    began = line.clock.now
    tickets = [object() for _ in range(5)]
    pauses = [line.ask(ticket) for ticket in tickets]
    assert pauses == pytest.approx([3.0 + 0.488 * place for place in range(5)], rel=0.01), (
        "half of 241 a minute"
    )
    line.clock.now = began + 100
    assert [line.ask(ticket) == 0.0 for ticket in tickets] == [
        True,
        False,
        False,
        False,
        False,
    ], "late or not"


def test_one_that_gives_up_makes_room_for_those_behind_it() -> None:
    line = Line()
    line.refuse(3.0)
    first, second = object(), object()
    assert line.ask(first) < line.ask(second)
    line.limiter.cancel(first)
    line.limiter.cancel(first)
    assert line.ask(second) == pytest.approx(3.0)


def test_a_refusal_slows_those_who_wait_already() -> None:
    line = Line()
    sent = line.leave()
    line.refuse(1.0)
    waits = object()
    assert line.ask(waits) == pytest.approx(1.0)
    line.limiter.slow_down(sent, 5.0)
    line.clock.now += 1.0
    assert line.ask(waits) == pytest.approx(4.0)


@pytest.mark.parametrize("callers", [1, 5, 20, 100])
@pytest.mark.parametrize("per_minute", [20, 60, 100, 600])
def test_many_callers_use_the_whole_rate_and_are_hardly_refused(
    per_minute: int, callers: int
) -> None:
    over = 200
    outcome = simulate(Service(per_minute), 2 * per_minute + over, callers)
    ideal = over * 60 / per_minute
    assert ideal - 1 <= outcome.left[-1] - outcome.left[0] <= max(1.15 * ideal, 75)
    # At most every caller's call that was on its way when the limit struck, twice, and then a few.
    assert outcome.refused <= 2 * callers + over * (0.08 if per_minute >= 60 else 0.6)
    if callers <= 20 and per_minute >= 60:  # slower than 0.5 a second nobody is asked to be
        assert outcome.tries <= 4, "five are all that a call has"


def test_without_the_limiter_the_same_callers_are_refused_many_times_as_often() -> None:
    class Holding(RateLimiter):
        """What was there before: everybody waits, and then all leave at once."""

        def slow_down(self, turn: int, retry_after: float | None) -> None:
            super().slow_down(turn, retry_after)
            self._state = self._state._replace(spacing=None, next_at=self._state.slowed_until)

    def refusals(limiter: RateLimiter) -> Outcome:
        return simulate(Service(100), 400, 20, limiter=limiter)

    paced, held = refusals(RateLimiter(Clock())), refusals(Holding(Clock()))
    assert held.refused > 20 * paced.refused
    assert held.tries > 5 >= paced.tries


# -- real sockets -------------------------------------------------------------------------------


class Standing:
    """The service's clock stands still until its burst is spent: a slow machine would never be
    refused.
    """

    def __init__(self) -> None:
        self.service: RunningService | None = None
        self._stood_at = datetime.now(UTC)
        self._going_since: float | None = None

    def __call__(self) -> datetime:
        if (
            self._going_since is None
            and self.service is not None
            and len(self.service.seen()) > BURST
        ):
            self._going_since = time.monotonic()
        gone = 0.0 if self._going_since is None else time.monotonic() - self._going_since
        return self._stood_at + timedelta(seconds=gone)


BURST = 284
"""What the service takes at once: fewer than 300 creates, but not by many."""


def arguments(service: RunningService) -> dict[str, str]:
    key = service.create_key().reveal()
    return {"api_key": key, "base_url": service.base_url, "link_base_url": service.link_base_url}


def share_by_threads(service: RunningService) -> set[str]:
    with Client(**arguments(service)) as client, ThreadPoolExecutor(20) as pool:
        return set(
            pool.map(
                lambda n: client.share([Field("n", str(n))], custody="off").short_code, range(300)
            )
        )


def share_often() -> tuple[int, int, int]:
    """How many short codes there were, how many creates the service saw, and how many shares came
    of them.
    """
    clock = Standing()
    with start(clock=clock) as service:
        service.set_account(requests_per_minute=BURST // 2)
        clock.service = service
        codes = share_by_threads(service)
        created = [seen for seen in service.seen() if seen.method == "POST"]
        shares = service.service.database.rows("SELECT short_code FROM shares", {})
        return len(codes), len(created), len(shares)


def test_twenty_callers_get_300_shares_made_with_few_refusals() -> None:
    codes, sent, made = share_often()
    assert codes == made == 300
    assert 300 < sent <= 300 + 40


def test_a_delay_beyond_the_deadline_fails_at_once_and_sends_nothing(
    service: RunningService, faulty: Faulty
) -> None:
    faulty.plan(says(429, headers={"Retry-After": "30"}), then=passes)
    began = time.monotonic()
    with (
        Client(**{**arguments(service), "base_url": faulty.base_url}, deadline=20) as client,
        stopwatch() as seconds,
    ):
        for _ in range(3):
            with pytest.raises(RateLimitError) as caught:
                client.list_shares()
            assert caught.value.retry_after is not None
            assert 30 - (time.monotonic() - began) - 1 <= caught.value.retry_after <= 30
        assert seconds() < 15, "it waits for none of its deadlines"
    assert len(faulty.received()) == 1


@pytest.mark.parametrize("deadline", [5.0, 10.0])
def test_no_request_leaves_so_late_that_its_outcome_would_be_unknown(
    service: RunningService, faulty: Faulty, monkeypatch: pytest.MonkeyPatch, deadline: float
) -> None:
    # Ten seconds, so that also a slow machine sends the first.
    monkeypatch.setattr(rate, "MIN_FIRST_RATE", 0.1)
    faulty.plan(then=says(429))  # without a Retry-After: spaced all the same
    with Client(**{**arguments(service), "base_url": faulty.base_url}, deadline=deadline) as client:
        with pytest.raises(RateLimitError):
            client.share([Field("n", "v")], custody="off")
        assert len(faulty.received()) == 1


@pytest.mark.parametrize(
    ("pause", "left", "late"), [(0.7, 1, False), (0.76, 1, True), (27, 30, False), (28.5, 30, True)]
)
def test_a_request_keeps_some_of_its_time_for_itself(
    pause: float, left: float, *, late: bool
) -> None:
    assert (refuse_delay(pause, left) is not None) == late


def limiter_of(client: AsyncClient) -> Any:
    return client.session.transport.get_limiter(client.session)


async def wait_until(fact: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not fact():
            await asyncio.sleep(0.01)


def test_a_task_that_is_cancelled_while_it_waits_does_not_block_the_others(
    service: RunningService, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate, "MIN_FIRST_RATE", 0.5)

    async def job() -> float:
        given = {**arguments(service), "base_url": faulty.base_url}
        async with AsyncClient(**given, deadline=60) as client:
            await client.list_shares()
            waiting = [asyncio.ensure_future(client.list_shares()) for _ in range(24)]
            await wait_until(lambda: len(limiter_of(client)._waiting) >= MAX_CONNECTIONS - 1)
            for task in waiting[:23]:
                task.cancel()
            with stopwatch() as seconds:
                await waiting[23]
                await asyncio.gather(*waiting[:23], return_exceptions=True)
                return seconds()

    faulty.plan(says(429, headers={"Retry-After": "1"}), then=passes)
    assert asyncio.run(job()) < 10, "not 18 or 48 seconds, as it would be at the end of the line"
    assert len(faulty.received()) <= 5, "cancelled ones are not sent"


def test_a_change_that_waits_for_its_turn_has_not_begun(
    service: RunningService, faulty: Faulty
) -> None:
    async def job() -> None:
        given = {**arguments(service), "base_url": faulty.base_url}
        async with AsyncClient(**given, deadline=60) as client:
            asking = asyncio.ensure_future(client.list_shares())
            await wait_until(lambda: limiter_of(client)._state.slowed_until)
            sharing = asyncio.ensure_future(client.share([Field("n", "v")], custody="off"))
            await wait_until(lambda: limiter_of(client)._waiting)
            await client.close()
            for task in (asking, sharing):
                with pytest.raises(ConnectError):
                    await task

    faulty.plan(then=says(429, headers={"Retry-After": "20"}))
    asyncio.run(job())
    assert [request.method for request in faulty.received()] == ["GET"]


class LateLimiter(RateLimiter):
    """Gives a request its turn after the call's time, as one in a busy database does."""

    def wait(self, timeout: float, sleep: Callable[[float], object]) -> int | Failure:
        time.sleep(timeout)
        return super().wait(timeout, sleep)


def test_a_request_whose_turn_comes_after_its_time_is_surely_not_sent() -> None:
    def send(timeout: float) -> Failure:
        raise AssertionError(f"sent with {timeout} s left")

    refused = send_in_turn(LateLimiter(), 0.01, send)
    assert isinstance(refused, Failure)
    assert not refused.sent
