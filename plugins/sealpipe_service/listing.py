"""What shares and requests have in common: expiry, counts and pages of the lists.

`mark_expired` sets `ended_at` on rows that have expired, before anything depends on it. So lists
and counts compare no times, and cost the same however much is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Row

from .context import Call, Service
from .journal import Note

TABLES = ("shares", "requests")
_MARK_EXPIRED = {
    table: (
        # The name is from above.
        f"UPDATE {table} SET ended_at = expires, ended_by = 'time' "  # noqa: S608
        "WHERE ended_at IS NULL AND expires <= :now"
    )
    for table in TABLES
}
_TO_NOTIFY = """SELECT short_code, notify_on FROM shares
                WHERE ended_at IS NULL AND expires <= :now AND notify_on IS NOT NULL"""
_LISTS = {
    # The names are from this file.
    (table, state): f"""SELECT * FROM {table} WHERE space = :space AND ended_at IS {test}
                       ORDER BY {order} DESC LIMIT :limit OFFSET :offset"""  # noqa: S608
    for table in TABLES
    for state, test, order in (
        ("live", "NULL", "number"),
        ("ended", "NOT NULL", "ended_at DESC, number"),
    )
}
_COUNT = "SELECT live, ended FROM counts WHERE what = :what AND space = :space"


def mark_expired(service: Service) -> None:
    """Mark expired rows, and notify their owners."""
    now = service.clock.timestamp()
    for row in service.store.rows(_TO_NOTIFY, {"now": now}):
        notify(service, row, "expired")
    for statement in _MARK_EXPIRED.values():
        service.store.change(statement, {"now": now})


def count(service: Service, table: str, space: str) -> dict[str, int]:
    """Return the numbers of `live` and `ended` rows of a space. Call `mark_expired` first."""
    row = service.store.row(_COUNT, {"what": table, "space": space})
    return (
        {"live": row["live"], "ended": row["ended"]} if row is not None else {"live": 0, "ended": 0}
    )


def page(call: Call, table: str) -> tuple[list[Row], dict[str, int]]:
    """Return a page of the list and its pagination: newest first.

    With `status=expired` latest end first.

    The specification has no `status`, so only an `extended` service reads it.
    """
    query = call.http_request.query
    state = "ended" if call.service.extended and query.get("status") == "expired" else "live"
    requested: Page = read_page(query)
    with call.service.store.transaction():
        mark_expired(call.service)
        total = count(call.service, table, call.key.space)[state]
        rows = call.service.store.rows(
            _LISTS[table, state],
            {"space": call.key.space, "limit": requested.limit, "offset": requested.offset},
        )
    return rows, requested.pagination(total)


def notify(service: Service, share: Row, table: str) -> None:
    """Notify a share's owner of an event named in `notify_on`.

    No email is sent; the log gets a note.
    """
    if table in json.loads(share["notify_on"] or "[]"):
        service.log.add_note(
            Note(service.clock.now(), "owner.notified", f"{share['short_code']} {table}")
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
