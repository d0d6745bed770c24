"""Ending a share at once (specification: DELETE /v1/shares/{shortCode}), as often as anybody likes.

A second DELETE answers 404/1, as for a code that never was. Only what proves that the share was this account's makes
that a success: this machine's own note that it expired it, the share's metadata (they stay where it ended by time or
views), or the service's list of what has ended. Without proof it is `NotFoundError`: a mistyped code is never a
success.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from sealpipe.api import shares
from sealpipe.errors import NotFoundError, OutcomeUnknownError, ServiceError, StateError
from sealpipe.flows import Budget, Do, Flow, call, outgoing, policy
from sealpipe.flows.session import Session
from sealpipe.wire.encoding import encoded
from sealpipe.wire.link import called

MAX_PAGES: Final = 5
"""Pages of 100 of what has ended, the latest first, in which a share is looked for."""


@dataclass(frozen=True, slots=True)
class EndedShare:
    """A share that is over. `outcome`: `expired` (now), or `already-expired` (before this call)."""

    short_code: str
    outcome: Literal["expired", "already-expired"]


def end_share(session: Session, short_code: str, budget: Budget | None = None) -> Flow[None]:
    """The share's link stops working now. Repeated where an answer is lost: doing it twice ends the same.

    A part of something that policies were asked about already. Raises NotFoundError where there is no such share, or it
    had ended before; OutcomeUnknownError where no try was settled.
    """
    try:
        yield from call(shares.expire(short_code), budget or session.start_budget())
    except OutcomeUnknownError as error:
        # "Not there" after a try of ours that may have got through: that try did it (DESIGN 6.4).
        if (error.status, error.error_code) != (404, 1):
            error.remedy = f"run `sealpipe shares expire -- {encoded(short_code)}` again: repeating it does no harm"
            raise


def expire_share(session: Session, short_code: str, keep: Path | None = None) -> Flow[EndedShare]:
    """End a share now; one that had ended before is `already-expired`. See `Client.expire_share`."""
    called(short_code)
    plan = outgoing.describe_ending(session, "expire", "share", short_code)
    work = _expire_share(session, short_code, keep)
    return (yield from policy.run_under_policy(session, plan, work, lambda ended: {"outcome": ended.outcome}))


def _expire_share(session: Session, short_code: str, keep: Path | None) -> Flow[EndedShare]:
    budget = session.start_budget()
    try:
        yield from end_share(session, short_code, budget)
    except NotFoundError as missing:
        if (missing.status, missing.error_code) != (404, 1):
            raise
        if not (yield from _was_ours(session, short_code, keep, budget)):
            missing.remedy = f"{missing.remedy}; a share that was expired from another machine looks the same"
            raise
        return EndedShare(short_code, "already-expired")
    if keep is not None:
        from sealpipe import state

        with suppress(StateError):  # it has ended, whatever becomes of the note
            yield Do(partial(state.note_expired, keep, session.base_url, short_code))
    return EndedShare(short_code, "expired")


def _was_ours(session: Session, short_code: str, keep: Path | None, budget: Budget) -> Flow[bool]:
    """Whether anything proves that there was such a share on this account. What cannot be asked proves nothing."""
    if keep is not None:
        from sealpipe import state

        if (yield Do(partial(state.was_expired, keep, session.base_url, short_code))):
            return True
    with suppress(ServiceError):
        yield from call(shares.get(short_code), budget)
        return True
    with suppress(ServiceError):
        for page in range(1, MAX_PAGES + 1):
            found = yield from call(shares.list_page(page, 100, "expired"), budget)
            if any(row.short_code == short_code for row in found.items):
                return True
            if page >= (found.pagination.total_pages or 0):
                break
    return False
