"""Sending one operation until it is settled: tries, deadline, back-off (DESIGN 6.9)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from sealpipe.api import Failure, Operation, Resend, Response
from sealpipe.api.refusals import NOT_CARRIED_OUT, service_error
from sealpipe.errors import (
    ConnectError,
    OutcomeUnknownError,
    ProtocolError,
    PublicKeyMismatchError,
    RateLimitError,
    RetriesExhaustedError,
    ServiceError,
)
from sealpipe.flows import Flow, Send, Wait

T = TypeVar("T")

TRIES = 5
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
LEAST_TRY = 30.0
"""Seconds that one try may take: half the deadline, but no less, so that a hanging one leaves time for another."""


class Budget:
    """What all tries of one command may take together, from now on.

    `deadline` is in seconds, by a monotonic `clock`; `chance` gives numbers from 0 to 1 in place of `random.random`.
    """

    def __init__(
        self,
        deadline: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self.deadline = deadline
        self.clock = clock
        self.chance = chance
        self.started = clock()

    def left(self) -> float:
        return self.deadline - (self.clock() - self.started)

    def one_try(self) -> float:
        return min(self.left(), max(LEAST_TRY, self.deadline / 2))

    def back_off(self, tries: int) -> float:
        """Full jitter: anything up to a bound that doubles."""
        from random import random  # most calls succeed at once

        return (self.chance or random)() * min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1))


class _Settled(NamedTuple, Generic[T]):
    value: T


class _Problem(NamedTuple):
    """Why a try did not settle the matter."""

    error: ServiceError
    again: bool
    unclear: bool
    """The service may have carried it out."""


def call(operation: Operation[T], budget: Budget, *, unclear: bool = False, most: int = TRIES) -> Flow[T]:
    """The decoded answer, or a ServiceError whose kind says what is known about the outcome.

    `unclear` tells that an earlier process may have had it carried out already. On the error, `unclear` says
    the same of this one. `most` is how often it is sent at most.
    """
    last: ServiceError = ConnectError(f"could not {operation.name}: the deadline passed before the first attempt")
    for tries in range(1, most + 1):
        if budget.left() <= 0:
            break  # the machine slept through it
        outcome = _judge(operation, (yield Send(operation, budget.one_try())))
        if isinstance(outcome, _Settled):
            value: T = outcome.value
            return value
        unclear = unclear or outcome.unclear
        if not _answered(last) or _answered(outcome.error):
            last = outcome.error  # what the service said tells more than the silence after it
        wait = _wait(outcome.error, budget, tries)
        if not outcome.again or tries == most or wait >= budget.left():
            break
        yield Wait(wait)
    raise _final(operation, last, unclear=unclear)


def _answered(error: ServiceError) -> bool:
    return error.status is not None or isinstance(error, ProtocolError)


def _judge(operation: Operation[T], result: Response | Failure) -> _Settled[T] | _Problem:
    if isinstance(result, Failure):
        return _unanswered(operation, result)
    if not operation.settles(result):
        return _refused(operation, service_error(result, operation.scope))
    try:
        return _Settled(operation.decode(result))
    except ProtocolError as error:
        # It was carried out. Reading it again, or replaying it, may bring an answer that can be used.
        again = operation.resend is not Resend.NEVER and not isinstance(error, PublicKeyMismatchError)
        return _Problem(error, again=again, unclear=True)


def _unanswered(operation: Operation[Any], failure: Failure) -> _Problem:
    if failure.retry_after is not None:
        limited = RateLimitError(f"could not {operation.name}: {failure.detail}", retry_after=failure.retry_after)
        return _Problem(limited, again=False, unclear=False)
    if not failure.sent:
        return _Problem(ConnectError(f"could not {operation.name}: {failure.detail}"), again=True, unclear=False)
    error = OutcomeUnknownError(f"no complete answer: {failure.detail}")
    return _Problem(error, again=operation.resend is not Resend.NEVER, unclear=True)


def _refused(operation: Operation[Any], error: ServiceError) -> _Problem:
    if isinstance(error, RateLimitError):
        return _Problem(error, again=True, unclear=False)
    if isinstance(error, OutcomeUnknownError):
        return _Problem(error, again=operation.resend is not Resend.NEVER, unclear=True)
    # A redirect, or a status that is none of the service's: something else answered; what it did is not known.
    return _Problem(error, again=False, unclear=isinstance(error, ProtocolError))


def _wait(error: ServiceError, budget: Budget, tries: int) -> float:
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        return error.retry_after
    # With little time left, one more try now is worth more than a longer pause and none.
    return min(budget.back_off(tries), max(0.0, budget.left() / 2))


def _final(operation: Operation[Any], last: ServiceError, *, unclear: bool) -> ServiceError:
    last.unclear = unclear and operation.resend is not Resend.READ and last.error_code not in NOT_CARRIED_OUT
    if operation.resend is Resend.READ and isinstance(last, OutcomeUnknownError):
        return _as(RetriesExhaustedError, f"could not {operation.name}: {last.message}", last)
    if last.unclear and not isinstance(last, ProtocolError):
        return _as(
            OutcomeUnknownError,
            f"it is not known whether the service could {operation.name}: {last.message}",
            last,
        )
    return last


def _as(kind: type[ServiceError], message: str, last: ServiceError) -> ServiceError:
    error = kind(
        message,
        status=last.status,
        error_code=last.error_code,
        additional_data=last.additional_data,
        retry_after=last.retry_after,
    )
    error.unclear = last.unclear
    return error
