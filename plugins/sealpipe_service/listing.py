"""What shares and requests have in common: pages of the lists, and what their owners are told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .context import Call, Service
from .database.access import Row
from .database.decisions import asks_for
from .journal import OWNER_NOTIFIED, Note


def sweep(service: Service) -> None:
    """End what has expired, and notify the owners."""
    for row in service.store.sweep():
        notify(service, row, "expired")


def page(call: Call, table: str) -> tuple[Sequence[Row], dict[str, int]]:
    """Return a page of the list and its pagination: newest first.

    With `status=expired` latest end first.

    The specification has no `status`, so only an `extended` service reads it.
    """
    query = call.http_request.query
    ended = call.service.extended and query.get("status") == "expired"
    if ended:
        sweep(call.service)
    requested: Page = read_page(query)
    total, rows = call.service.store.page(
        table, call.key.space, most=requested.limit, skipped=requested.offset, ended=ended
    )
    return rows, requested.pagination(total)


def notify(service: Service, share: Row, event: str) -> None:
    """Tell of an event named in `notify_on`, which the store has queued a notice of.

    A rehearsal's log gets a note; a server sends e-mail.
    """
    if asks_for(share, event):
        service.deliverer.wake()
        service.log.add_note(
            Note(service.clock.now(), OWNER_NOTIFIED, f"{share['short_code']} {event}")
        )


DEFAULT_LIMIT = 25
MAX_LIMIT = 100

_POSITIVE = re.compile(r"0*([1-9][0-9]*)", re.ASCII)

_LARGEST = 10**15 - 1
"""The largest number that counts: it is beyond every page, and its products fit SQLite's
integers.
"""


@dataclass(frozen=True)
class Page:
    """A page number and limit.

    Invalid values are corrected, never rejected (specification: GET /v1/requests).
    """

    page: int
    limit: int

    @property
    def offset(self) -> int:
        """The number of items before this page."""
        return (self.page - 1) * self.limit

    def pagination(self, total: int) -> dict[str, int]:
        """The pagination object. An empty list has no pages."""
        return {
            "page": self.page,
            "limit": self.limit,
            "total_pages": -(-total // self.limit),
            "total": total,
        }


def read_limit(query: Mapping[str, str], default: int, largest: int) -> int:
    """Return the corrected limit of a query."""
    return min(_positive(query.get("limit"), default), largest)


def read_page(query: Mapping[str, str]) -> Page:
    """Return the corrected page number of a query."""
    return Page(
        page=_positive(query.get("page"), 1),
        limit=read_limit(query, DEFAULT_LIMIT, MAX_LIMIT),
    )


def _positive(text: str | None, fallback: int) -> int:
    match = _POSITIVE.fullmatch(text or "")
    if match is None:
        return fallback
    digits = match[1]
    return int(digits) if len(digits) <= len(str(_LARGEST)) else _LARGEST
