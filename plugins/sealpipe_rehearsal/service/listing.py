"""What shares and requests have in common once they exist: they end by themselves, and are listed in pages.

`ended_at` is written when something is ended by somebody. What time alone ends gets it here, before anything
depends on it: lists and counts then need not compare times, and cost the same however much is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Row

from .context import Call, Service
from .log import Note

TABLES = ("shares", "requests")
_MARK_EXPIRED = {
    table: f"UPDATE {table} SET ended_at = expires, ended_by = 'time' WHERE ended_at IS NULL AND expires <= :now"  # noqa: S608  # names from above
    for table in TABLES
}
_TO_NOTIFY = """SELECT short_code, notify_on FROM shares
                WHERE ended_at IS NULL AND expires <= :now AND notify_on IS NOT NULL"""
_LISTS = {
    (table, state): f"""SELECT * FROM {table} WHERE space = :space AND ended_at IS {test}
                       ORDER BY {order} DESC LIMIT :limit OFFSET :offset"""  # noqa: S608  # names from above and here
    for table in TABLES
    for state, test, order in (("live", "NULL", "number"), ("ended", "NOT NULL", "ended_at DESC, number"))
}
_COUNT = "SELECT live, ended FROM counts WHERE what = :what AND space = :space"


def mark_expired(service: Service) -> None:
    """Mark what has ended by time."""
    now = service.clock.timestamp()
    for row in service.store.rows(_TO_NOTIFY, {"now": now}):
        notify(service, row, "expired")
    for statement in _MARK_EXPIRED.values():
        service.store.change(statement, {"now": now})


def count(service: Service, table: str, space: str) -> dict[str, int]:
    """How many of a space are `live` and how many `ended`, once settled."""
    row = service.store.row(_COUNT, {"what": table, "space": space})
    return {"live": row["live"], "ended": row["ended"]} if row is not None else {"live": 0, "ended": 0}


def page(call: Call, table: str) -> tuple[list[Row], dict[str, int]]:
    """A page of the list and its figures: newest first, or with `status=expired` what ended last first.

    The specification has no `status`: a service that is not `extended` passes it by.
    """
    query = call.http_request.query
    state = "ended" if call.service.extended and query.get("status") == "expired" else "live"
    requested: Page = read_page(query)
    with call.service.store.transaction():
        mark_expired(call.service)
        total = count(call.service, table, call.key.space)[state]
        rows = call.service.store.rows(
            _LISTS[table, state], {"space": call.key.space, "limit": requested.limit, "offset": requested.offset}
        )
    return rows, requested.pagination(total)


def notify(service: Service, share: Row, table: str) -> None:
    """Tell a share's owner what became of it, where `notify_on` names that. No mail leaves here: it is a note."""
    if table in json.loads(share["notify_on"] or "[]"):
        service.log.add_note(Note(service.clock.now(), "owner.notified", f"{share['short_code']} {table}"))


DEFAULT_LIMIT = 25
MAX_LIMIT = 100

_POSITIVE = re.compile(r"0*([1-9][0-9]*)", re.ASCII)

_LARGEST = 10**15 - 1
"""Beyond every page there could be, and no arithmetic on it leaves SQLite's integers: what is larger counts as this."""


@dataclass(frozen=True)
class Page:
    """Which page was asked for, as corrected."""

    page: int
    limit: int

    @property
    def offset(self) -> int:
        """How many items come before it."""
        return (self.page - 1) * self.limit

    def pagination(self, total: int) -> dict[str, int]:
        """The pagination object. No items are no pages."""
        return {
            "page": self.page,
            "limit": self.limit,
            "total_pages": -(-total // self.limit),
            "total": total,
        }


def read_limit(query: Mapping[str, str], default: int, largest: int) -> int:
    """How many a query asks for, as corrected."""
    return min(_positive(query.get("limit"), default), largest)


def read_page(query: Mapping[str, str]) -> Page:
    """The page that a query asks for."""
    return Page(
        page=_positive(query.get("page"), 1),
        limit=read_limit(query, DEFAULT_LIMIT, MAX_LIMIT),
    )


def _positive(text: str | None, fallback: int) -> int:
    found = _POSITIVE.fullmatch(text or "")
    if found is None:
        return fallback
    digits = found[1]
    return int(digits) if len(digits) <= len(str(_LARGEST)) else _LARGEST
