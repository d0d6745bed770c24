"""Ending a request without ever destroying what was submitted to it (DESIGN 6.4, rule D).

At the service the same DELETE expires an active request and destroys an expired one, and none can be made to
depend on the state it finds. What keeps a second one away:

    lock     one command at a time on a request
    look     GET: over already, or over so soon that the DELETE might come too late: no DELETE
    keep     the ciphertext of every submission; where that fails, no DELETE
    look     again: keeping may have taken its time
    note     in the record, safe on disk: a DELETE is about to be sent
    DELETE   one, on a connection of its own; whatever comes back, no other
    look     where what came back leaves doubt; only looks, from here on
    keep     what was submitted in between

A record that tells of a DELETE whose outcome nobody learned (we were killed, or every look failed) keeps the next
command from sending another, for `GRACE`: the first one might still arrive, and the two together would destroy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from sealpipe.api import requests as api
from sealpipe.api.models import RequestInfo, Submission, Submissions
from sealpipe.errors import (
    DeliveryError,
    NotFoundError,
    OutcomeUnknownError,
    ProtocolError,
    SealpipeError,
    ServiceError,
    StateError,
)
from sealpipe.flows import Do, Flow, Wait, outgoing, policy
from sealpipe.flows.retry import TRIES, Budget, call
from sealpipe.flows.session import Session
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger
from sealpipe.times import format_time
from sealpipe.wire.encoding import encoded

MARGIN = timedelta(seconds=120)
"""A request that ends sooner, by the service's clock, is left to end by itself."""
MARGIN_BY_OUR_CLOCK = timedelta(hours=1)
"""The same where the service does not tell its clock: ours may be wrong by as much as clocks usually are."""
DELETE_SECONDS = 60.0
"""After the look that found it active, a DELETE leaves within this time or not at all; what is left of `MARGIN`
is its time on the way."""
GRACE = timedelta(hours=1)
"""How long a DELETE may be under way. The longest that a kernel goes on sending what a closed connection left is
about 15 minutes; nothing is lost by waiting for longer."""
_POLL = 0.25

Clock = Callable[[], datetime]
Outcome = Literal["expired", "already-expired", "expiring", "deleted"]


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that is over.

    `outcome`: `expired` (now), `already-expired` (no DELETE was sent), `expiring` (it ends by itself at
    `expires_at`, within two minutes; no DELETE was sent) or `deleted` (purged). `submissions` are all that there
    are, as ciphertext; `late` of them came while it ended. `skipped` were not end-to-end encrypted: the service
    does not hand them out. `kept_in` is the file that holds the ciphertext, None without a folder.
    """

    short_code: str
    outcome: Outcome
    submissions: tuple[Submission, ...] = field(repr=False)
    late: int = 0
    skipped: int = 0
    expires_at: datetime | None = None
    kept_in: Path | None = None


def utc_now() -> datetime:
    """Our clock."""
    return datetime.now(UTC)


def expire_request(session: Session, short_code: str, keep: Path | None, now: Clock = utc_now) -> Flow[EndedRequest]:
    """End a request now, and keep what was submitted. See `Client.expire_request`."""

    def expire(record: Ledger) -> Flow[EndedRequest]:
        return RequestExpiry(session, short_code, record, now).run()

    return end_under_policy(session, "expire", short_code, keep, expire)


def end_under_policy(
    session: Session,
    verb: Literal["expire", "purge"],
    short_code: str,
    keep: Path | None,
    work: Callable[[Ledger], Flow[EndedRequest]],
) -> Flow[EndedRequest]:
    """Ask the policies; then do the work on the request's record, locked and closed again."""
    api.get(short_code)  # UsageError for what is no short code, before anybody is asked
    plan = outgoing.describe_ending(session, verb, "request", short_code)
    ending = _end_on_record(session, short_code, keep, work)
    return (yield from policy.run_under_policy(session, plan, ending, lambda ended: {"outcome": ended.outcome}))


def _end_on_record(
    session: Session, short_code: str, keep: Path | None, work: Callable[[Ledger], Flow[EndedRequest]]
) -> Flow[EndedRequest]:
    record = yield from lock_record(session, short_code, keep)
    try:
        return (yield from work(record))
    finally:
        record.close()


def lock_record(session: Session, short_code: str, keep: Path | None) -> Flow[Ledger]:
    """The request's record, once no other command has it. StateError where one has it for too long."""
    api.get(short_code)  # UsageError for what is no short code, before there is a file for it
    session.check_clear(short_code)
    budget = session.budget()
    while True:
        record: Ledger | None = yield Do(partial(open_ledger, keep, session.base_url, short_code))
        if record is not None:
            return record
        if budget.left() <= _POLL:
            raise StateError(
                f"another command is working on request {short_code}", remedy="wait for it; then run this one again"
            )
        yield Wait(_POLL)


class RequestExpiry:
    """One command's work on one request. The record is the caller's to close."""

    def __init__(self, session: Session, short_code: str, record: Ledger, now: Clock = utc_now) -> None:
        self._session = session
        self._code = short_code
        self._record = record
        self._now = now

    def run(self) -> Flow[EndedRequest]:
        """From the first look to the last submission kept."""
        budget = self._session.budget()
        seen = yield from self._look(budget)
        before = yield from self._keep(budget)
        if seen.expires_at is None:
            return (yield from self._over("already-expired", before, before))
        started = self._now()
        seen = yield from self._look(budget)
        if seen.expires_at is None:
            return (yield from self._over("already-expired", (yield from self._keep_late()), before))
        if self._too_soon(seen.expires_at, seen.answered_at):
            return self._ended("expiring", before, before, seen.expires_at)
        yield from self._end(seen.answered_at, started)
        return (yield from self._over("expired", (yield from self._keep_late()), before))

    def _look(self, budget: Budget) -> Flow[RequestInfo]:
        seen = yield from call(api.get(self._code), budget)
        if (seen.expires_at is None) is not (seen.public_key is None):
            raise ProtocolError(
                f"it is unclear from the service's response whether request {self._code} is active: nothing was changed"
            )
        return seen

    def _keep(self, budget: Budget) -> Flow[Submissions]:
        found = yield from call(api.submissions(self._code), budget)
        yield Do(partial(self._record.keep, found.items))
        return found

    def _keep_late(self) -> Flow[Submissions]:
        try:
            return (yield from self._keep(self._session.budget()))
        except SealpipeError as error:
            raise DeliveryError(
                f"request {self._code} has expired, but its last submissions could not be stored: {error.message}",
                remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again: it sends no DELETE, and stores "
                "the rest",
            ) from None

    def _too_soon(self, ends: datetime, answered_at: datetime | None) -> bool:
        """Whether a DELETE might arrive when the request is over already: then it would destroy."""
        return ends - self._now() <= MARGIN_BY_OUR_CLOCK if answered_at is None else ends - answered_at <= MARGIN

    def _end(self, answered_at: datetime | None, started: datetime) -> Flow[None]:
        earlier = self._record.pending
        if self._record.is_expired or (earlier is not None and self._left_of(earlier, answered_at) > timedelta(0)):
            yield from self._learn(None)
            return
        try:
            yield Do(partial(self._record.note_delete, PendingDelete(self._now(), answered_at)))
        except BaseException:  # whoever goes away at this moment, by a signal or cancelled, sends nothing
            with suppress(StateError):
                self._record.settle("not sent")
            raise
        passed = max(0.0, (self._now() - started).total_seconds())  # by the wall clock: a machine may have slept
        budget = self._session.budget()
        budget.deadline = min(budget.deadline, DELETE_SECONDS - passed)
        try:
            done = yield from call(api.delete(self._code), budget, most=1)
        except ServiceError as error:
            if error.unclear or (error.status or 0) >= 500:
                yield from self._learn(error)
                return
            yield from self._settle(f"not carried out: {type(error).__name__}")
            raise
        yield from self._settle(done.outcome)
        if done.outcome != "expired":
            kept = f", and stored in {self._record.place}" if self._record.place else ""
            raise NotFoundError(
                f"another client expired request {self._code} at the same moment, so this DELETE deleted it for good; "
                f"its submissions were read before{kept}"
            )

    def _settle(self, outcome: str) -> Flow[None]:
        with suppress(StateError):  # then the note of a DELETE stays, and the next command looks for itself
            yield Do(partial(self._record.settle, outcome))

    def _learn(self, error: ServiceError | None) -> Flow[None]:
        """Only looks, until one finds it over; OutcomeUnknownError where none does."""
        budget = self._session.budget()
        trouble = "it was still active"
        for tries in range(1, TRIES + 1):
            try:
                seen = yield from self._look(budget)
            except NotFoundError:
                yield from self._settle("gone")
                raise
            except ServiceError as failed:
                trouble = failed.message
                break
            if seen.expires_at is None:
                yield from self._settle("expired")
                return
            pause = budget.back_off(tries)
            if tries == TRIES or pause >= budget.left():
                break
            yield Wait(pause)
        raise self._unknown(error, trouble)

    def _unknown(self, error: ServiceError | None, trouble: str) -> OutcomeUnknownError:
        sent = self._record.pending
        until = "" if sent is None else f" before {format_time(sent.at + GRACE)}"
        first = "it is not known whether a DELETE that was sent before has arrived" if error is None else error.message
        if self._record.is_expired:
            first = "the service told before that it has expired, and now tells otherwise"
        unknown = OutcomeUnknownError(
            f"request {self._code}: {first}; at the last look, {trouble}",
            remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again, at any time: it checks the state, "
            f"and sends no second DELETE{until}, because the first may still arrive and the two together would "
            "destroy the submissions",
            status=None if error is None else error.status,
            error_code=None if error is None else error.error_code,
        )
        unknown.unclear = True
        return unknown

    def _left_of(self, sent: PendingDelete, answered_at: datetime | None) -> timedelta:
        """What is left of the time in which an earlier DELETE may arrive: by one clock, the service's if it told."""
        if sent.answered_at is not None and answered_at is not None:
            return GRACE - (answered_at - sent.answered_at)
        return GRACE - (self._now() - sent.at)

    def _over(self, outcome: Outcome, found: Submissions, before: Submissions) -> Flow[EndedRequest]:
        yield from self._settle("expired")
        return self._ended(outcome, found, before)

    def _ended(
        self, outcome: Outcome, found: Submissions, before: Submissions, expires_at: datetime | None = None
    ) -> EndedRequest:
        # Both reads together: what the second leaves out, though the first had it, is not gone for the caller.
        items = {submission.identity: submission for submission in before.items}
        early = len(items)
        items |= {submission.identity: submission for submission in found.items}
        every, skipped = tuple(items.values()), found.skipped or 0
        return EndedRequest(self._code, outcome, every, len(every) - early, skipped, expires_at, self._record.place)
