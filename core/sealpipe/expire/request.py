"""Expires a request without ever destroying its submissions.

At the service, the same DELETE expires an active request and destroys an expired one, and it cannot
be made conditional. These steps prevent a second one:

    lock     one command at a time for a request
    check    GET: if it has ended, or ends so soon that the DELETE might come too late: no DELETE
    store    the ciphertext of every submission; if that fails: no DELETE
    check    again: storing may have taken time
    note     in the ledger, safe on disk: a DELETE is about to be sent
    DELETE   once, on a connection of its own, and never again whatever the response
    check    if the response leaves doubt; from here on only GET
    store    what was submitted in between

If a ledger has a DELETE without a known outcome (the process was killed, or every check failed),
the next command sends no other one for `GRACE`: the first might still arrive, and the two together
would destroy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from sealpipe import actions, policy
from sealpipe.api import requests as api
from sealpipe.api.requests import RequestInfo, Submission, Submissions
from sealpipe.budget import MAX_TRIES, Budget, call
from sealpipe.cancellation import CancelledCallError
from sealpipe.errors import (
    DeliveryError,
    NotFoundError,
    OutcomeUnknownError,
    ProtocolError,
    SealpipeError,
    ServiceError,
    StateError,
)
from sealpipe.parsing import format_time
from sealpipe.session import Session
from sealpipe.state.ledger import Ledger, LedgerOpener, PendingDelete, open_ledger
from sealpipe.wire.encoding import encoded

MARGIN = timedelta(seconds=120)
"""A request that ends sooner, by the service's clock, is left to expire."""
LOCAL_CLOCK_MARGIN = timedelta(hours=1)
"""The same by our own clock, which may be wrong, for a response without the service's time."""
DELETE_DEADLINE = 60.0
"""Seconds after the check that found the request active in which a DELETE is sent, or not at all.

The rest of `MARGIN` is for its way to the service."""
GRACE = timedelta(hours=1)
"""How long a DELETE may be under way.

After a connection is closed, a kernel keeps sending for at most about 15 minutes; a longer wait
loses nothing.
"""
_LOCK_POLL_INTERVAL = 0.25

Clock = Callable[[], datetime]
Outcome = Literal["expired", "already-expired", "expiring", "deleted"]


@dataclass(frozen=True, slots=True)
class EndedRequest:
    """A request that has ended.

    `outcome`: `expired` (now), `already-expired` (no DELETE was sent), `expiring` (it ends at
    `expires_at`, within two minutes; no DELETE was sent) or `deleted` (purged). `submissions` are
    all submissions, as ciphertext; `late` of them came while it ended. `skipped` were not
    end-to-end encrypted: the service does not return them. `kept_in` is the file with the
    ciphertext, None without a folder.
    """

    short_code: str
    outcome: Outcome
    submissions: tuple[Submission, ...] = field(repr=False)
    late: int = 0
    skipped: int = 0
    expires_at: datetime | None = None
    kept_in: Path | None = None


def get_utc_now() -> datetime:
    """Return this machine's time."""
    return datetime.now(UTC)


def expire_request(
    session: Session, short_code: str, keep: Path | LedgerOpener | None, now: Clock = get_utc_now
) -> EndedRequest:
    """Expire a request, and store what was submitted. See `Client.expire_request`."""

    def expire(session: Session, record: Ledger) -> EndedRequest:
        return RequestExpiry(session, short_code, record, now).run()

    return end_under_policy(session, "expire", short_code, keep, expire)


def end_under_policy(
    session: Session,
    verb: Literal["expire", "purge"],
    short_code: str,
    keep: Path | LedgerOpener | None,
    work: Callable[[Session, Ledger], EndedRequest],
) -> EndedRequest:
    """Ask the policies; then do the work while the request's ledger is locked."""
    api.get(short_code)  # UsageError for an invalid short code, before policies are asked
    plan = actions.describe_ending(session, verb, "request", short_code)

    def ending(session: Session) -> EndedRequest:
        return _end_on_record(session, short_code, keep, work)

    return policy.run_under_policy(session, plan, ending, lambda ended: {"outcome": ended.outcome})


def _end_on_record(
    session: Session,
    short_code: str,
    keep: Path | LedgerOpener | None,
    work: Callable[[Session, Ledger], EndedRequest],
) -> EndedRequest:
    record = lock_record(session, short_code, keep)
    try:
        return work(session, record)
    finally:
        record.close()


def lock_record(session: Session, short_code: str, keep: Path | LedgerOpener | None) -> Ledger:
    """Open the request's ledger when no other command has it locked.

    StateError if that takes too long.
    """
    api.get(short_code)  # UsageError for an invalid short code, before there is a file for it
    session.check_clear(short_code)
    budget = session.start_budget()
    open_record: LedgerOpener = keep if callable(keep) else partial(open_ledger, keep)
    while True:
        record = open_record(session.base_url, short_code)
        if record is not None:
            return record
        if budget.get_remaining() <= _LOCK_POLL_INTERVAL:
            raise StateError(
                f"another command is working on request {short_code}",
                remedy="wait for it; then run this one again",
            )
        session.wait(_LOCK_POLL_INTERVAL)


class RequestExpiry:
    """One command's work on one request. The caller closes the ledger."""

    def __init__(
        self, session: Session, short_code: str, record: Ledger, now: Clock = get_utc_now
    ) -> None:
        self._session = session
        self._code = short_code
        self._record = record
        self._now = now

    def run(self, *, was_active: bool = False) -> EndedRequest:
        """Check, store, expire, and store late submissions.

        `was_active`: the caller has made the first check. The one right before the DELETE decides.
        """
        budget = self._session.start_budget()
        has_ended = not was_active and self._fetch_state(budget).expires_at is None
        earlier = self._keep_submissions(budget)
        if has_ended:
            return self._finish("already-expired", earlier, earlier)
        started = self._now()
        info = self._fetch_state(budget)
        if info.expires_at is None:
            return self._finish("already-expired", self._keep_last_submissions(), earlier)
        if self._expires_soon(info.expires_at, info.answered_at):
            return self._make_result("expiring", earlier, earlier, info.expires_at)
        self._delete(info.answered_at, started)
        return self._finish("expired", self._keep_last_submissions(), earlier)

    def _fetch_state(self, budget: Budget) -> RequestInfo:
        info = call(api.get(self._code), budget)
        if (info.expires_at is None) is not (info.public_key is None):
            raise ProtocolError(
                f"it is unclear from the service's response whether request {self._code} "
                "is active: nothing was changed"
            )
        return info

    def _keep_submissions(self, budget: Budget) -> Submissions:
        submissions = call(api.list_submissions(self._code), budget)
        self._record.keep(submissions.items)
        return submissions

    def _keep_last_submissions(self) -> Submissions:
        try:
            return self._keep_submissions(self._session.start_budget())
        except SealpipeError as error:
            raise DeliveryError(
                (
                    f"request {self._code} has expired, but its last submissions could not be "
                    f"stored: {error.message}"
                ),
                remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again: it sends "
                "no DELETE, and stores "
                "the rest",
            ) from None

    def _expires_soon(self, expires_at: datetime, answered_at: datetime | None) -> bool:
        """Return whether a DELETE might arrive after the request has ended.

        Then it would destroy.
        """
        return (
            expires_at - self._now() <= LOCAL_CLOCK_MARGIN
            if answered_at is None
            else expires_at - answered_at <= MARGIN
        )

    def _delete(self, answered_at: datetime | None, started: datetime) -> None:
        pending = self._record.pending
        if self._record.is_expired or (
            pending is not None and self._get_remaining_grace(pending, answered_at) > timedelta(0)
        ):
            self._find_outcome(None)
            return
        try:
            self._record.note_delete(PendingDelete(self._now(), answered_at))
        except BaseException:  # a signal, or cancelled: no DELETE is sent
            with suppress(StateError):
                self._record.settle("not sent")
            raise
        # By the wall clock: a machine may have slept.
        elapsed = max(0.0, (self._now() - started).total_seconds())
        budget = self._session.start_budget()
        budget.deadline = min(budget.deadline, DELETE_DEADLINE - elapsed)
        try:
            deleted = call(api.delete(self._code), budget, max_tries=1)
        except CancelledCallError:  # before the one attempt
            with suppress(StateError):
                self._record.settle("not sent")
            raise
        except ServiceError as error:
            if error.unclear or (error.status or 0) >= 500:
                self._find_outcome(error)
                return
            self._settle(f"not carried out: {type(error).__name__}")
            raise
        self._settle(deleted.outcome)
        if deleted.outcome != "expired":
            location = f", and stored in {self._record.path}" if self._record.path else ""
            raise NotFoundError(
                f"another client expired request {self._code} at the same moment, so this "
                "DELETE deleted it for good; "
                f"its submissions were read before{location}"
            )

    def _settle(self, outcome: str) -> None:
        # Then the note of a DELETE stays, and the next command checks the state.
        with suppress(StateError):
            self._record.settle(outcome)

    def _find_outcome(self, error: ServiceError | None) -> None:
        """Check until the request has ended, without another DELETE.

        Raises OutcomeUnknownError if it stays active.
        """
        budget = self._session.start_budget()
        detail = "it was still active"
        for tries in range(1, MAX_TRIES + 1):
            try:
                info = self._fetch_state(budget)
            except NotFoundError:
                self._settle("gone")
                raise
            except ServiceError as failed:
                detail = failed.message
                break
            if info.expires_at is None:
                self._settle("expired")
                return
            delay = budget.draw_backoff(tries)
            if tries == MAX_TRIES or delay >= budget.get_remaining():
                break
            self._session.wait(delay)
        raise self._make_unknown_error(error, detail)

    def _make_unknown_error(self, error: ServiceError | None, detail: str) -> OutcomeUnknownError:
        pending = self._record.pending
        deadline = "" if pending is None else f" before {format_time(pending.at + GRACE)}"
        reason = (
            "it is not known whether a DELETE that was sent before has arrived"
            if error is None
            else error.message
        )
        if self._record.is_expired:
            reason = "the service first reported it as expired, then as active"
        outcome_error = OutcomeUnknownError(
            f"request {self._code}: {reason}; at the last look, {detail}",
            remedy=f"run `sealpipe requests expire -- {encoded(self._code)}` again, at any time: "
            "it checks the state, "
            f"and sends no second DELETE{deadline}, because the first may still arrive and "
            "the two together would "
            "destroy the submissions",
            status=None if error is None else error.status,
            error_code=None if error is None else error.error_code,
        )
        outcome_error.unclear = True
        return outcome_error

    def _get_remaining_grace(
        self, pending: PendingDelete, answered_at: datetime | None
    ) -> timedelta:
        """Return how long an earlier DELETE may still arrive, by the service's clock if known."""
        if pending.answered_at is not None and answered_at is not None:
            return GRACE - (answered_at - pending.answered_at)
        return GRACE - (self._now() - pending.at)

    def _finish(
        self, outcome: Outcome, submissions: Submissions, earlier: Submissions
    ) -> EndedRequest:
        self._settle("expired")
        return self._make_result(outcome, submissions, earlier)

    def _make_result(
        self,
        outcome: Outcome,
        submissions: Submissions,
        earlier: Submissions,
        expires_at: datetime | None = None,
    ) -> EndedRequest:
        # Both reads combined: the caller also gets a submission that only the first read returned.
        items = {submission.identity: submission for submission in earlier.items}
        earlier_count = len(items)
        items |= {submission.identity: submission for submission in submissions.items}
        all_items, skipped = tuple(items.values()), submissions.skipped or 0
        return EndedRequest(
            self._code,
            outcome,
            all_items,
            len(all_items) - earlier_count,
            skipped,
            expires_at,
            self._record.path,
        )
