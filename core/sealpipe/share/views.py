"""What the service tells of a share's views: whether it was opened, and whether it has ended.

The access log says so, where the service has one (the specification has none). Else only a share
that nothing but opening uses up, with one view and no passcode, says it: by ending before its time.
What the service does not tell is None, and never guessed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sealpipe.api import shares
from sealpipe.api.account import AccessLog, ShareInfo, get_access_log
from sealpipe.api.operation import Response
from sealpipe.api.pages import Page
from sealpipe.api.responses import read_clock
from sealpipe.budget import call
from sealpipe.errors import MissingScopeError, NotFoundError
from sealpipe.lookup import PAGE_SIZE, read_whole
from sealpipe.session import Session


class View(NamedTuple):
    """What the service says of a share.

    Whether it was opened (None: it does not say), and whether it has ended.
    """

    opened: bool | None
    ended: bool


class Listing(NamedTuple):
    """Whether the service lists a share as active, its time then (None: it did not say), and the
    number of pages that were read.
    """

    is_active: bool
    at: datetime | None
    pages: int


MARGIN: Final = timedelta(seconds=120)
"""Before its expiry a share may have ended by it: the service's processes may differ in their
time.
"""


def may_be_over(info: ShareInfo, at: datetime | None) -> bool:
    """Return whether a share may have ended by its expiry at this time (None: not known)."""
    if not info.expiry_known:
        return True
    return info.expires_at is not None and (at is None or at >= info.expires_at - MARGIN)


def fetch_log(session: Session, short_code: str) -> AccessLog | None:
    """Return the latest page of a share's access log; None if it cannot be read here."""
    try:
        return call(get_access_log(short_code, limit=100), session.start_budget())
    except (MissingScopeError, NotFoundError):
        return None


def was_opened(log: AccessLog | None, created_at: datetime | None) -> bool | None:
    """Return whether an access log has a view.

    None if it does not say: there is no log, it has more pages, it does not go back to when the
    share was created (None: not known), or an entry may be a failed passcode.
    """
    if log is None:
        return None
    if any(each.failed_passcode is False for each in log.entries):
        return True
    is_cut = log.effective_from is not None and (
        created_at is None or log.effective_from > created_at
    )
    is_unclear = any(each.failed_passcode is None for each in log.entries)
    return None if log.next_cursor or is_cut or is_unclear else False


def judge_ended(
    session: Session, short_code: str, *, is_over: bool, is_used_up_by_opening: bool
) -> bool | None:
    """Return whether a share that is not active any more was opened; None: the service does not
    say.

    `is_over` says that its time may be up: it may have been opened before, or not.
    """
    if is_over or not is_used_up_by_opening:
        return None
    try:
        call(shares.get(short_code), session.start_budget())
    except NotFoundError:  # somebody expired it: nothing is left of it
        return None
    return True


def find_listing(session: Session, short_code: str) -> Listing | None:
    """Look for a share among the active ones, of which the newest come first.

    None if the list moved while it was read.
    """
    clocks: list[datetime | None] = []

    def fetch(number: int) -> Page[ShareInfo]:
        operation = shares.list_page(number, PAGE_SIZE)

        def decode(response: Response) -> Page[ShareInfo]:
            clocks.append(read_clock(response.headers))
            return operation.decode(response)

        return call(replace(operation, decode=decode), session.start_budget())

    rows = read_whole(fetch, lambda row: row.short_code, short_code)
    return None if rows is None else Listing(short_code in rows, clocks[-1], len(clocks))
