"""The list of what has ended, which not every service has (`gaps.md`, both lists).

One that follows the specification to the letter knows no `status`, and lists the active requests all the same: taken
for what has ended, they would tell somebody that nothing needs an old key any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sealpipe.api.models import Page, Pagination, RequestInfo
from sealpipe.cli import render
from sealpipe.client import Client
from sealpipe.errors import UsageError

_NOT_OFFERED = "this service does not list what has ended"


@dataclass
class Ended:
    """Watches the rows of such a list go by: an active one proves that it is another list."""

    client: Client
    ended: int = 0
    active: int = 0

    def rows(self, rows: Iterable[RequestInfo]) -> Iterator[RequestInfo]:
        """Those that have ended: the others are of another list."""
        for row in rows:
            if row.expires_at is None:
                self.ended += 1
                yield row
            else:
                self.active += 1

    def page(self, page: Page[RequestInfo]) -> Page[RequestInfo]:
        """The same for a page; the figures of another list are none of this one."""
        items = tuple(self.rows(page.items))
        return replace(page, items=items, pagination=Pagination()) if self.active else page

    def offered(self) -> bool:
        """Whether the service has the list. An empty one shows only by what else it can do."""
        if self.active or self.ended:
            return not self.active
        return self.client.get_capabilities() is not None or bool(self.client.list_requests(limit=1).items)

    def tell(self, *, must: bool) -> None:
        """Say so where it has not; UsageError where something hangs on it."""
        if self.offered():
            return
        if must:
            raise UsageError(
                f"{_NOT_OFFERED}: what still needs a key cannot be told",
                remedy="keep the key before this one, or look at each ended request: sealpipe collect CODE",
            )
        render.note(_NOT_OFFERED)
