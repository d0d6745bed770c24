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
from sealpipe.flows import MAX_TRIES, Budget, Do, Flow, Wait, call, outgoing, policy
from sealpipe.flows.session import Session
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger
from sealpipe.values import format_time
from sealpipe.wire.encoding import encoded

MARGIN = timedelta(seconds=120)
"""A request that ends sooner, by the service's clock, is left to end by itself."""
LOCAL_CLOCK_MARGIN = timedelta(hours=1)
"""The same where the service does not tell its clock: ours may be wrong by as much as clocks usually are."""
DELETE_DEADLINE = 60.0
"""After the look that found it active, a DELETE leaves within this time or not at all; what is left of `MARGIN`
is its time on the way."""
GRACE = timedelta(hours=1)
"""How long a DELETE may be under way. The longest that a kernel goes on sending what a closed connection left is
about 15 minutes; nothing is lost by waiting for longer."""
_LOCK_POLL_INTERVAL = 0.25

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


def get_utc_now() -> datetime:
    """Our clock."""
    return datetime.now(UTC)


def expire_request(
    session: Session, short_code: str, keep: Path | None, now: Clock = get_utc_now
) -> Flow[EndedRequest]:
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
    budget = session.start_budget()
    while True:
        record: Ledger | None = yield Do(partial(open_ledger, keep, session.base_url, short_code))
        if record is not None:
            return record
        if budget.get_remaining() <= _LOCK_POLL_INTERVAL:
            raise StateError(
                f"another command is working on request {short_code}", remedy="wait for it; then run this one again"
            )
        yield Wait(_LOCK_POLL_INTERVAL)


class RequestExpiry:
    """One command's work on one request. The record is the caller's to close."""

    def __init__(self, session: Session, short_code: str, record: Ledger, now: Clock = get_utc_now) -> None:
        self._session = session
        self._code = short_code
        self._record = record
        self._now = now

    def run(self) -> Flow[EndedRequest]:
        """From the first look to the last submission kept."""
        budget = self._session.start_budget()
        info = yield from self._fetch_state(budget)
        earlier = yield from self._keep_submissions(budget)
        if info.expires_at is None:
            return (yield from self._finish("already-expired", earlier, earlier))
        started = self._now()
        info = yield from self._fetch_state(budget)
        if info.expires_at is None:
            return (yield from self._finish("already-expired", (yield from self._keep_last_submissions()), earlier))
        if self._expires_soon(info.expires_at, info.answered_at):
            return self._make_result("expiring", earlier, earlier, info.expires_at)
        yield from self._delete(info.answered_at, started)
        return (yield from self._finish("expired", (yield from self._keep_last_submissions()), earlier))

    def _fetch_state(self, budget: Budget) -> Flow[RequestInfo]:
        info = yield from call(api.get(self._code), budget)
        if (info.expires_at is None) is not (info.public_key is None):
            raise ProtocolError(
                f"it is unclear from the service's response whether request {self._code} is active: nothing was changed"
            )
        return info

    def _keep_submissions(self, budget: Budget) -> Flow[Submissions]:
        submissions = yield from call(api.list_submissions(self._code), budget)
        yield Do(partial(self._record.keep, submissions.items))
        return submissions

    def _keep_last_submissions(self) -> Flow[Submissions]:
        try:
            return (yield from self._keep_submissions(self._session.start_budget()))
        except SealpipeError as error:
            raise DeliveryError(
                f"request {self._code} has expired, but its last submissions could not be stored: {error.message}",
                remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again: it sends no DELETE, and stores "
                "the rest",
            ) from None

    def _expires_soon(self, expires_at: datetime, answered_at: datetime | None) -> bool:
        """Whether a DELETE might arrive when the request is over already: then it would destroy."""
        return (
            expires_at - self._now() <= LOCAL_CLOCK_MARGIN
            if answered_at is None
            else expires_at - answered_at <= MARGIN
        )

    def _delete(self, answered_at: datetime | None, started: datetime) -> Flow[None]:
        pending = self._record.pending
        if self._record.is_expired or (
            pending is not None and self._get_remaining_grace(pending, answered_at) > timedelta(0)
        ):
            yield from self._find_outcome(None)
            return
        try:
            yield Do(partial(self._record.note_delete, PendingDelete(self._now(), answered_at)))
        except BaseException:  # whoever goes away at this moment, by a signal or cancelled, sends nothing
            with suppress(StateError):
                self._record.settle("not sent")
            raise
        elapsed = max(0.0, (self._now() - started).total_seconds())  # by the wall clock: a machine may have slept
        budget = self._session.start_budget()
        budget.deadline = min(budget.deadline, DELETE_DEADLINE - elapsed)
        try:
            deleted = yield from call(api.delete(self._code), budget, max_tries=1)
        except ServiceError as error:
            if error.unclear or (error.status or 0) >= 500:
                yield from self._find_outcome(error)
                return
            yield from self._settle(f"not carried out: {type(error).__name__}")
            raise
        yield from self._settle(deleted.outcome)
        if deleted.outcome != "expired":
            location = f", and stored in {self._record.path}" if self._record.path else ""
            raise NotFoundError(
                f"another client expired request {self._code} at the same moment, so this DELETE deleted it for good; "
                f"its submissions were read before{location}"
            )

    def _settle(self, outcome: str) -> Flow[None]:
        with suppress(StateError):  # then the note of a DELETE stays, and the next command looks for itself
            yield Do(partial(self._record.settle, outcome))

    def _find_outcome(self, error: ServiceError | None) -> Flow[None]:
        """Only looks, until one finds it over; OutcomeUnknownError where none does."""
        budget = self._session.start_budget()
        detail = "it was still active"
        for tries in range(1, MAX_TRIES + 1):
            try:
                info = yield from self._fetch_state(budget)
            except NotFoundError:
                yield from self._settle("gone")
                raise
            except ServiceError as failed:
                detail = failed.message
                break
            if info.expires_at is None:
                yield from self._settle("expired")
                return
            delay = budget.draw_backoff(tries)
            if tries == MAX_TRIES or delay >= budget.get_remaining():
                break
            yield Wait(delay)
        raise self._make_unknown_error(error, detail)

    def _make_unknown_error(self, error: ServiceError | None, detail: str) -> OutcomeUnknownError:
        pending = self._record.pending
        deadline = "" if pending is None else f" before {format_time(pending.at + GRACE)}"
        reason = "it is not known whether a DELETE that was sent before has arrived" if error is None else error.message
        if self._record.is_expired:
            reason = "the service told before that it has expired, and now tells otherwise"
        outcome_error = OutcomeUnknownError(
            f"request {self._code}: {reason}; at the last look, {detail}",
            remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again, at any time: it checks the state, "
            f"and sends no second DELETE{deadline}, because the first may still arrive and the two together would "
            "destroy the submissions",
            status=None if error is None else error.status,
            error_code=None if error is None else error.error_code,
        )
        outcome_error.unclear = True
        return outcome_error

    def _get_remaining_grace(self, pending: PendingDelete, answered_at: datetime | None) -> timedelta:
        """What is left of the time in which an earlier DELETE may arrive: by one clock, the service's if it told."""
        if pending.answered_at is not None and answered_at is not None:
            return GRACE - (answered_at - pending.answered_at)
        return GRACE - (self._now() - pending.at)

    def _finish(self, outcome: Outcome, submissions: Submissions, earlier: Submissions) -> Flow[EndedRequest]:
        yield from self._settle("expired")
        return self._make_result(outcome, submissions, earlier)

    def _make_result(
        self, outcome: Outcome, submissions: Submissions, earlier: Submissions, expires_at: datetime | None = None
    ) -> EndedRequest:
        # Both reads together: what the second leaves out, though the first had it, is not gone for the caller.
        items = {submission.identity: submission for submission in earlier.items}
        earlier_count = len(items)
        items |= {submission.identity: submission for submission in submissions.items}
        all_items, skipped = tuple(items.values()), submissions.skipped or 0
        return EndedRequest(
            self._code, outcome, all_items, len(all_items) - earlier_count, skipped, expires_at, self._record.path
        )
