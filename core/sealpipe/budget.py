"""`call`, which sends one operation until it is settled: tries, deadline and backoff."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sealpipe.api.operation import Failure, Operation, Resend, Response
from sealpipe.api.responses import NOT_CARRIED_OUT, make_service_error
from sealpipe.cancellation import current
from sealpipe.errors import (
    ConnectError,
    OutcomeUnknownError,
    ProtocolError,
    PublicKeyMismatchError,
    RateLimitError,
    RetriesExhaustedError,
    ServiceError,
)

T = TypeVar("T")


class Sender(Protocol):
    """What `call` needs of a session."""

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send one operation once, within `timeout` seconds."""

    def wait(self, seconds: float) -> None:
        """Wait, while the caller may cancel."""


class Offline:
    """The session of work that calls no service."""

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:  # noqa: ARG002
        """Send nothing."""
        raise AssertionError(f"work without a service sends nothing ({operation.name})")

    def wait(self, seconds: float) -> None:
        """Wait, while the caller may cancel."""
        wait(seconds)


Finish = Callable[[Response | Failure | None, BaseException | None], object]
Watch = Callable[[Operation[Any] | float], Finish | None]
"""Gets an operation that is sent, or the seconds of a wait, and may return what gets the result or
error.
"""

watch: Watch | None = None
"""Watches every session (`--debug`)."""


def wait(seconds: float) -> None:
    """Wait, while the caller may cancel. Raises CancelledCallError."""
    if watch is not None:
        watch(seconds)
    current().wait(seconds)


MAX_TRIES = 5
FIRST_BACKOFF, MAX_BACKOFF = 0.5, 8.0
MIN_TRY_TIMEOUT = 30.0
"""Minimum seconds for one attempt; half the deadline if that is more.

So a hanging attempt leaves time for another.
"""


class Budget:
    """The time and the attempts of one command, from now on.

    `deadline` is in seconds of a monotonic `clock`; `chance` returns numbers from 0 to 1 instead of
    `random.random`. `session` sends what the command asks for.
    """

    def __init__(
        self,
        deadline: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] | None = None,
        session: Sender | None = None,
    ) -> None:
        self.session: Sender = session or Offline()
        self.deadline = deadline
        self.clock = clock
        self.draw = chance
        self.started = clock()

    def get_remaining(self) -> float:
        return self.deadline - (self.clock() - self.started)

    def get_try_timeout(self) -> float:
        return min(self.get_remaining(), max(MIN_TRY_TIMEOUT, self.deadline / 2))

    def draw_backoff(self, tries: int) -> float:
        """Return a delay in seconds with full jitter.

        A random part of a bound that doubles with every attempt.
        """
        from random import random  # most calls succeed at once

        return (self.draw or random)() * min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** (tries - 1))


class _Success(NamedTuple, Generic[T]):
    value: T


class _FailedTry(NamedTuple):
    """An attempt that did not settle the operation, and the reason."""

    error: ServiceError
    may_retry: bool
    is_unclear: bool
    """Whether the service may have carried it out."""


def call(
    operation: Operation[T], budget: Budget, *, unclear: bool = False, max_tries: int = MAX_TRIES
) -> T:
    """Send an operation until it is settled, at most `max_tries` times; decode its response.

    With `unclear`, an earlier process may have completed it. Raises ServiceError, whose class shows
    what is known of the outcome; its `unclear` says the same of this process.
    """
    last: ServiceError = ConnectError(
        f"could not {operation.name}: the deadline passed before the first attempt"
    )
    for tries in range(1, max_tries + 1):
        if budget.get_remaining() <= 0:
            break  # the machine was asleep
        outcome = _classify(operation, budget.session.send(operation, budget.get_try_timeout()))
        if isinstance(outcome, _Success):
            value: T = outcome.value
            return value
        unclear = unclear or outcome.is_unclear
        if not _has_response(last) or _has_response(outcome.error):
            last = outcome.error  # a response is more informative than a lost connection after it
        delay = _choose_wait(outcome.error, budget, tries)
        if not outcome.may_retry or tries == max_tries or delay >= budget.get_remaining():
            break
        budget.session.wait(delay)
    raise _make_final_error(operation, last, unclear=unclear)


def _has_response(error: ServiceError) -> bool:
    return error.status is not None or isinstance(error, ProtocolError)


def _classify(operation: Operation[T], result: Response | Failure) -> _Success[T] | _FailedTry:
    if isinstance(result, Failure):
        return _classify_failure(operation, result)
    if not operation.is_settled(result):
        return _classify_refusal(
            operation, make_service_error(result, operation.scope, operation.subject)
        )
    try:
        return _Success(operation.decode(result))
    except ProtocolError as error:
        # The service has carried it out. Reading the result again, or replaying the call, may
        # return a usable response.
        may_retry = operation.resend is not Resend.NEVER and not isinstance(
            error, PublicKeyMismatchError
        )
        return _FailedTry(error, may_retry=may_retry, is_unclear=True)


def _classify_failure(operation: Operation[Any], failure: Failure) -> _FailedTry:
    if failure.retry_after is not None:
        rate_limit = RateLimitError(
            f"could not {operation.name}: {failure.detail}", retry_after=failure.retry_after
        )
        return _FailedTry(rate_limit, may_retry=False, is_unclear=False)
    if not failure.sent:
        return _FailedTry(
            ConnectError(f"could not {operation.name}: {failure.detail}"),
            may_retry=True,
            is_unclear=False,
        )
    error = OutcomeUnknownError(f"no complete response: {failure.detail}")
    return _FailedTry(error, may_retry=operation.resend is not Resend.NEVER, is_unclear=True)


def _classify_refusal(operation: Operation[Any], error: ServiceError) -> _FailedTry:
    if isinstance(error, RateLimitError):
        return _FailedTry(error, may_retry=True, is_unclear=False)
    if isinstance(error, OutcomeUnknownError):
        return _FailedTry(error, may_retry=operation.resend is not Resend.NEVER, is_unclear=True)
    # A redirect, or a status that the service does not use: something else responded, and the
    # outcome is unknown.
    return _FailedTry(error, may_retry=False, is_unclear=isinstance(error, ProtocolError))


def _choose_wait(error: ServiceError, budget: Budget, tries: int) -> float:
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        return error.retry_after
    # With little time left, one more attempt now is better than a longer backoff without one.
    return min(budget.draw_backoff(tries), max(0.0, budget.get_remaining() / 2))


def _make_final_error(
    operation: Operation[Any], last: ServiceError, *, unclear: bool
) -> ServiceError:
    last.unclear = (
        unclear and operation.resend is not Resend.READ and last.error_code not in NOT_CARRIED_OUT
    )
    if operation.resend is Resend.READ and isinstance(last, OutcomeUnknownError):
        return _convert_error(
            RetriesExhaustedError, f"could not {operation.name}: {last.message}", last
        )
    if last.unclear and not isinstance(last, ProtocolError):
        return _convert_error(
            OutcomeUnknownError,
            f"it is not known whether the service could {operation.name}: {last.message}",
            last,
            operation.if_unknown,
        )
    return last


def _convert_error(
    kind: type[ServiceError], message: str, last: ServiceError, remedy: str | None = None
) -> ServiceError:
    error = kind(
        message,
        remedy=remedy,
        status=last.status,
        error_code=last.error_code,
        additional_data=last.additional_data,
        retry_after=last.retry_after,
    )
    error.unclear = last.unclear
    return error
