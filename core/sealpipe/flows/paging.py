"""Walk a list page by page, to its end."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from sealpipe.errors import ProtocolError
from sealpipe.flows import Flow

if TYPE_CHECKING:
    from sealpipe.api.account import Access, AccessLog
    from sealpipe.api.models import Page

T = TypeVar("T")

MAX_PAGES = 10_000
"""Pages of a list at most: one without an end must not hold us, and fill our memory, for ever."""


def check_page_limit(page: int) -> None:
    """ProtocolError where a list goes on for more pages than any has."""
    if page > MAX_PAGES:
        raise ProtocolError(f"the service's list has more than {MAX_PAGES} pages: sealpipe reads no further")


class PageIterator(Protocol[T]):
    """What a client walks: page after page, until it is done."""

    is_done: bool

    def fetch_next(self) -> Flow[list[T]]:
        """The rows of the next page."""


class PageWalk(Generic[T]):
    """The pages of a list, one flow each. `identity` tells one row from another.

    It ends at an empty page, at the last page by the service's own count, or where the service repeats a page;
    never because a page is short. Rows seen before (the list moved while it was walked) are left out.
    """

    def __init__(self, fetch: Callable[[int], Flow[Page[T]]], identity: Callable[[T], Hashable]) -> None:
        self._fetch = fetch
        self._identity = identity
        self._seen: set[Hashable] = set()
        self._page = 0
        self.is_done = False

    def fetch_next(self) -> Flow[list[T]]:
        """The rows of the next page that were not seen yet."""
        self._page += 1
        check_page_limit(self._page)
        page = yield from self._fetch(self._page)
        fresh = {self._identity(row): row for row in page.items if self._identity(row) not in self._seen}
        self._seen |= fresh.keys()
        total = page.pagination.total_pages
        self.is_done = not fresh or (total is not None and self._page >= total)
        return list(fresh.values())


class LogPageWalk:
    """The pages of an access log. `first` is the first page, None before it came and where no log is offered.

    It ends where the service names no next cursor, or one that was used already.
    """

    def __init__(self, fetch: Callable[[str | None], Flow[AccessLog | None]]) -> None:
        self._fetch = fetch
        self._cursor: str | None = None
        self._used: set[str | None] = {None}
        self.first: AccessLog | None = None
        self.is_done = False

    def fetch_next(self) -> Flow[list[Access]]:
        """The entries of the next page; none where no log is offered."""
        check_page_limit(len(self._used))
        page = yield from self._fetch(self._cursor)
        self.first = self.first or page
        self._cursor = page.next_cursor if page else None
        self.is_done = self._cursor in self._used
        self._used.add(self._cursor)
        return list(page.entries) if page else []
