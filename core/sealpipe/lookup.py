"""Look things up at the service.

The pages of a list, and the share or request that a short code names.

A word on a command line is a short code, or its encoded form. Most words can be only one of the
two, and the service is not asked. A word such as `a%2Fb` may be the code `a%2Fb` or the encoded
form of `a/b`: both are looked up, and the one that exists is meant. If both exist, or this machine
has a record of the other, the word is refused: nothing is ended or opened by a guess. Purging
destroys, so there `--confirm` decides which one is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from sealpipe.api import account, requests, shares
from sealpipe.api.account import Access, AccessLog, Capabilities, ShareInfo
from sealpipe.api.operation import Operation
from sealpipe.api.pages import Page
from sealpipe.api.requests import CreatedRequest, RequestInfo
from sealpipe.budget import call
from sealpipe.errors import (
    NotFoundError,
    OutcomeUnknownError,
    ProtocolError,
    ServiceError,
    UsageError,
)
from sealpipe.expire.share import was_expired
from sealpipe.session import Session
from sealpipe.wire.encoding import decoded, encoded
from sealpipe.wire.link import called

T = TypeVar("T")

PAGE_SIZE: Final = 100
"""Rows of a page: the most that the service gives."""
MAX_PAGES = 10_000
"""Maximum number of pages: an endless list must not keep us busy and fill our memory."""


def check_page_limit(page: int) -> None:
    """Raise ProtocolError if a list has more pages than any real one."""
    if page > MAX_PAGES:
        raise ProtocolError(
            f"the service's list has more than {MAX_PAGES} pages: sealpipe reads no further"
        )


class PageIterator(Protocol[T]):
    """The pages of a list, one after another, until `is_done`."""

    is_done: bool

    def fetch_next(self) -> list[T]:
        """Return the rows of the next page."""


class PageWalk(Generic[T]):
    """The pages of a numbered list, each fetched by one call. `identity` identifies a row.

    It ends at an empty page, at the last page by the service's own count, or where the service
    repeats a page; never because a page is short. Rows seen before (the list moved between two
    pages) are left out.
    """

    def __init__(self, fetch: Callable[[int], Page[T]], identity: Callable[[T], Hashable]) -> None:
        self._fetch = fetch
        self._identity = identity
        self._seen: set[Hashable] = set()
        self._page = 0
        self.is_done = False

    def fetch_next(self) -> list[T]:
        """Return the rows of the next page that no earlier page had."""
        self._page += 1
        check_page_limit(self._page)
        page = self._fetch(self._page)
        fresh = {
            self._identity(row): row for row in page.items if self._identity(row) not in self._seen
        }
        self._seen |= fresh.keys()
        total = page.pagination.total_pages
        self.is_done = not fresh or (total is not None and self._page >= total)
        return list(fresh.values())


def read_whole(
    fetch: Callable[[int], Page[T]], identity: Callable[[T], str], wanted: str | None = None
) -> Mapping[str, T] | None:
    """Return the rows of a numbered list of pages of `PAGE_SIZE` rows; those up to `wanted`, if it
    is among them. None if the pages do not make up one list.

    That something is missing in a list proves nothing if the list moved while it was read: a row
    that ends lets the next page's first one slip onto the page before. So a list counts only if all
    pages agree on its length, and so many rows came.
    """
    rows: dict[str, T] = {}
    totals: set[int | None] = set()
    number = 1
    while True:
        check_page_limit(number)
        page = fetch(number)
        rows |= {identity(row): row for row in page.items}
        if wanted in rows:
            return rows
        totals.add(page.pagination.total)
        if len(page.items) < PAGE_SIZE:
            break
        number += 1
    is_whole = totals in ({None}, {len(rows)}) and (None not in totals or number == 1)
    return rows if is_whole else None


class LogPageWalk:
    """The pages of an access log.

    `first` is the first page: None before it is fetched, and where there is no log.

    It ends where the service gives no next cursor, or one that was used before.
    """

    def __init__(self, fetch: Callable[[str | None], AccessLog | None]) -> None:
        self._fetch = fetch
        self._cursor: str | None = None
        self._used: set[str | None] = {None}
        self.first: AccessLog | None = None
        self.is_done = False

    def fetch_next(self) -> list[Access]:
        """Return the entries of the next page; none where there is no log."""
        check_page_limit(len(self._used))
        page = self._fetch(self._cursor)
        self.first = self.first or page
        self._cursor = page.next_cursor if page else None
        self.is_done = self._cursor in self._used
        self._used.add(self._cursor)
        return list(page.entries) if page else []


def walk_shares(
    session: Session, limit: int, status: Literal["expired"] | None = None
) -> PageWalk[ShareInfo]:
    """Return the pages of all active or expired shares, newest first, of so many rows each."""
    return PageWalk(
        lambda page: call(shares.list_page(page, limit, status), session.start_budget()),
        lambda row: row.short_code,
    )


def walk_requests(
    session: Session, limit: int, status: Literal["expired"] | None = None
) -> PageWalk[RequestInfo]:
    """Return pages of all active or expired requests, newest first."""
    return PageWalk(
        lambda page: call(requests.list_page(page, limit, status), session.start_budget()),
        lambda row: row.short_code,
    )


def walk_share_log(
    session: Session, short_code: str, since: datetime | None, until: datetime | None
) -> LogPageWalk:
    """Return the pages of a share's access log."""

    def fetch(cursor: str | None) -> AccessLog | None:
        page = account.get_access_log(
            short_code, limit=100, cursor=cursor, since=since, until=until
        )
        return call(page, session.start_budget())

    return LogPageWalk(fetch)


def find_capabilities(session: Session) -> Capabilities | None:
    """Find what the key and the plan allow; None if the service does not say.

    Remembers the key's custody level.
    """
    found = call(account.get_capabilities(), session.start_budget())
    if found is not None:
        session.note_custody(has_custody=found.has_custody)
    return found


Lookup = Callable[[str], bool]
"""Asks whether a short code is, or was, one of this account's."""


def find_share_code(session: Session, word: str, keep: Path | None = None) -> str:
    """Return the short code of the share that `word` names.

    `keep` is the folder where this machine records the shares that it expired. Raises UsageError
    for an ambiguous word.
    """
    return _resolve(word, partial(_find_share, session, keep))


def find_request_code(session: Session, word: str, keep: Path | None = None) -> str:
    """Return the short code of the request that `word` names.

    `keep` is the folder of this machine's records of requests. Raises UsageError for an ambiguous
    word.
    """
    return _resolve(word, partial(_find_request, session, keep))


def confirm_code(word: str, confirm: str) -> str:
    """Return the short code of what is to be destroyed, from the two words that name it.

    One of the words must be unambiguous and the other must match it. Raises UsageError if they may
    name two codes.
    """
    candidates = [
        {each for each in (spelling, decoded(spelling)) if each is not None}
        for spelling in (word, confirm)
    ]
    common = candidates[0] & candidates[1]
    if len(common) == 1:
        return common.pop()
    if common:
        other = decoded(word) or word
        raise UsageError(
            (
                f"{word} is ambiguous: it can be this code or the encoded form of {other}; "
                "nothing was sent"
            ),
            remedy=(
                f"confirm with --confirm {encoded(word)} for the one, with the code itself for "
                "the other"
            ),
        )
    return word  # not confirmed: the caller's error explains that


def _resolve(word: str, exists: Lookup) -> str:
    called(word)  # a link or a credential is never looked up
    decoded_word = decoded(word)
    if decoded_word is None:
        return word
    is_literal = _check_exists(word, exists)
    is_encoded = _check_exists(decoded_word, exists)
    if is_literal and is_encoded:
        raise UsageError(
            (
                f"{word} is ambiguous: one code is exactly this, and it is the encoded form of "
                "another; nothing was done"
            ),
            remedy=f"write the first as {encoded(word)}, the second as the plain code",
        )
    return decoded_word if is_encoded else word


def _check_exists(code: str, exists: Lookup) -> bool:
    try:
        called(code)
    except UsageError:
        return False
    return exists(code)


def _find_share(session: Session, keep: Path | None, code: str) -> bool:
    if keep is not None and was_expired(keep, session.base_url, code):
        return True
    return _exists(session, shares.get(code))


def _find_request(session: Session, keep: Path | None, code: str) -> bool:
    if keep is not None:
        from sealpipe.state import ledger

        if ledger.has_ledger(keep, session.base_url, code):
            return True
    return _exists(session, requests.get(code))


def _exists(session: Session, operation: Operation[Any]) -> bool:
    try:
        call(operation, session.start_budget())
    except NotFoundError:
        return False
    return True


MAX_CANDIDATES: Final = 20
"""How many requests an error lists that may be the one whose response was lost."""


def find_created_request(
    session: Session, meta: Mapping[str, Any], error: ServiceError
) -> CreatedRequest:
    """Find the request whose response was lost.

    A fresh key identifies it; the credential's key is in every request.
    """
    rows: list[RequestInfo] = []
    budget = session.start_budget()
    with suppress(ServiceError):
        pages: PageWalk[RequestInfo] = PageWalk(
            lambda page: call(requests.list_page(page, 100), budget), lambda row: row.short_code
        )
        while not pages.is_done:
            rows += [row for row in pages.fetch_next() if row.public_key == meta["public_key"]]
    if meta["key"] == "new" and len(rows) == 1:
        return CreatedRequest(
            rows[0].short_code, rows[0].expires_at, rows[0].public_key, replayed=True
        )
    if rows and isinstance(error, OutcomeUnknownError):
        codes = ", ".join(row.short_code for row in rows[:MAX_CANDIDATES])
        more = f"; if it was made, it is one of these, newest first: {codes}"
        raise error.copy_with(message=error.message + more) from error.__cause__
    raise error
