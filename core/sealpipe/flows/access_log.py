"""Walking a share's access log to its end (`gaps.md`, newer endpoints)."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.api.optional import Access, AccessLog
from sealpipe.flows.paging import bounded
from sealpipe.flows.steps import Flow


class LogWalk:
    """The pages of an access log. `first` is the first page, None before it came and where no log is offered.

    It ends where the service names no next cursor, or one that was used already.
    """

    def __init__(self, fetch: Callable[[str | None], Flow[AccessLog | None]]) -> None:
        self._fetch = fetch
        self._cursor: str | None = None
        self._used: set[str | None] = {None}
        self.first: AccessLog | None = None
        self.done = False

    def next_page(self) -> Flow[list[Access]]:
        """The entries of the next page; none where no log is offered."""
        bounded(len(self._used))
        page = yield from self._fetch(self._cursor)
        self.first = self.first or page
        self._cursor = page.next_cursor if page else None
        self.done = self._cursor in self._used
        self._used.add(self._cursor)
        return list(page.entries) if page else []
