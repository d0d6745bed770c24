"""Tries inside one deadline, driven by hand: a clock that the test moves, and answers that it
gives.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import NamedTuple

import pytest

from sealpipe import (
    ConnectError,
    OutcomeUnknownError,
    RateLimitError,
    RetriesExhaustedError,
    ServiceError,
)
from sealpipe.api.operation import Failure, Operation, Resend, Response
from sealpipe.budget import MAX_TRIES, Budget, call

NOT_SENT, SENT = Failure(sent=False, detail="no connection"), Failure(sent=True, detail="it broke")
Reaction = Callable[[int], Response | Failure]


def operation(resend: Resend = Resend.KEYED) -> Operation[str]:
    return Operation("do it", "POST", "/x", resend, lambda answer: answer.body.decode())


class Clock:
    """Monotonic seconds. Each send takes `sending`, each wait `oversleep` times what was asked
    for.
    """

    def __init__(self, sending: float = 0.0, oversleep: float = 1.0) -> None:
        self.now = 100.0
        self.sending = sending
        self.oversleep = oversleep

    def __call__(self) -> float:
        return self.now


class Played(NamedTuple):
    """A session without a network."""

    send: Callable[[Operation[str], float], Response | Failure]
    wait: Callable[[float], None]


def drive(
    reaction: Reaction, clock: Clock, resend: Resend = Resend.KEYED, deadline: float = 60.0
) -> tuple[str | ServiceError, list[float], list[float]]:
    """What came out, the time that each try was given, and each wait."""
    given: list[float] = []
    waits: list[float] = []

    def send(_operation: Operation[str], timeout: float) -> Response | Failure:
        given.append(timeout)
        clock.now += clock.sending
        return reaction(len(given))

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock.now += seconds * clock.oversleep

    session = Played(send, wait)
    try:
        return call(operation(resend), Budget(deadline, clock, lambda: 1.0, session)), given, waits
    except ServiceError as error:
        return error, given, waits


def always(result: Response | Failure) -> Reaction:
    return lambda _: result


def answer(status: int, **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, b"")


def test_the_pause_doubles_up_to_eight_seconds_and_there_are_five_tries() -> None:
    error, given, waits = drive(always(answer(500)), Clock())
    assert isinstance(error, OutcomeUnknownError)
    assert len(given) == MAX_TRIES == 5
    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_without_a_draw_of_ones_own_the_pause_is_a_random_part() -> None:
    draw_backoff = unwrap(Budget.draw_backoff)  # for all other tests, retries follow at once
    drawn = [draw_backoff(Budget(), 3) for _ in range(50)]
    assert len(set(drawn)) > 1
    assert 0.0 <= min(drawn) <= max(drawn) <= 2.0


@pytest.mark.parametrize("oversleep", [1.0, 1.5, 3.0, 100.0])
@pytest.mark.parametrize("result", [NOT_SENT, SENT, answer(503), answer(429)])
def test_no_try_is_begun_without_time_however_late_the_machine_wakes_us(
    result: Response | Failure, oversleep: float
) -> None:
    _, given, _ = drive(always(result), Clock(sending=0.3, oversleep=oversleep), deadline=2.0)
    assert given
    assert min(given) > 0


@pytest.mark.parametrize(
    ("results", "resend", "kind"),
    [
        ([NOT_SENT], Resend.KEYED, ConnectError),
        ([NOT_SENT], Resend.READ, ConnectError),
        ([NOT_SENT, SENT], Resend.KEYED, OutcomeUnknownError),
        ([SENT, NOT_SENT], Resend.KEYED, OutcomeUnknownError),
        ([SENT], Resend.READ, RetriesExhaustedError),
        ([SENT], Resend.REPEATABLE, OutcomeUnknownError),
        ([answer(429)], Resend.KEYED, RateLimitError),
        ([answer(500), answer(429)], Resend.KEYED, OutcomeUnknownError),
        ([answer(429, retry_after="3600")], Resend.KEYED, RateLimitError),
    ],
)
def test_the_error_says_what_is_known_of_the_outcome(
    results: list[Response | Failure], resend: Resend, kind: type[ServiceError]
) -> None:
    error, _, _ = drive(lambda number: results[min(number, len(results)) - 1], Clock(), resend)
    assert type(error) is kind


def test_what_may_never_be_sent_twice_is_sent_once() -> None:
    for result in (SENT, answer(500), answer(503)):
        _, given, _ = drive(always(result), Clock(), Resend.NEVER)
        assert len(given) == 1


@pytest.mark.parametrize("text", ["0", "7", "59"])
def test_a_retry_after_within_the_deadline_is_waited_for_exactly(text: str) -> None:
    results = [answer(429, retry_after=text), Response(200, {}, b"done")]
    value, _, waits = drive(lambda number: results[number - 1], Clock())
    assert (value, waits) == ("done", [float(text)])


@pytest.mark.parametrize(
    "text", ["60", "99999999999", "999999999999999999", "-1", "1.5", "soon", "", "inf"]
)
def test_a_retry_after_that_is_absurd_or_none_never_outlasts_the_deadline(text: str) -> None:
    clock = Clock()
    error, _, waits = drive(always(answer(429, retry_after=text)), clock)
    assert isinstance(error, RateLimitError)
    assert clock.now - 100.0 <= 60.0
    assert all(seconds <= 8 for seconds in waits)
