"""What shares and requests have in common once they exist: they end by themselves, and are listed in pages.

`ended_at` is written when something is ended by somebody. What time alone ends gets it here, before anything
depends on it: lists and counts then need not compare times, and cost the same however much is stored.
"""

from __future__ import annotations

from sqlite3 import Row

from . import events
from .context import Call, Service
from .paging import Page, read_page

TABLES = ("shares", "requests")
_SETTLE = {
    what: f"UPDATE {what} SET ended_at = expires, ended_by = 'time' WHERE ended_at IS NULL AND expires <= :now"  # noqa: S608  # names from above
    for what in TABLES
}
_TO_NOTIFY = """SELECT short_code, notify_on FROM shares
                WHERE ended_at IS NULL AND expires <= :now AND notify_on IS NOT NULL"""
_LISTS = {
    (what, state): f"""SELECT * FROM {what} WHERE space = :space AND ended_at IS {test}
                       ORDER BY {order} DESC LIMIT :limit OFFSET :offset"""  # noqa: S608  # names from above and here
    for what in TABLES
    for state, test, order in (("live", "NULL", "number"), ("ended", "NOT NULL", "ended_at DESC, number"))
}
_COUNT = "SELECT live, ended FROM counts WHERE what = :what AND space = :space"


def settle(service: Service) -> None:
    """Mark what has ended by time."""
    now = service.clock.timestamp()
    for row in service.store.rows(_TO_NOTIFY, {"now": now}):
        events.notify(service, row, "expired")
    for statement in _SETTLE.values():
        service.store.change(statement, {"now": now})


def count(service: Service, what: str, space: str) -> dict[str, int]:
    """How many of a space are `live` and how many `ended`, once settled."""
    row = service.store.row(_COUNT, {"what": what, "space": space})
    return {"live": row["live"], "ended": row["ended"]} if row is not None else {"live": 0, "ended": 0}


def page(call: Call, what: str) -> tuple[list[Row], dict[str, int]]:
    """A page of the list and its figures: newest first, or with `status=expired` what ended last first.

    The specification has no `status`: a service that is not `extended` passes it by.
    """
    query = call.incoming.query
    state = "ended" if call.service.extended and query.get("status") == "expired" else "live"
    wanted: Page = read_page(query)
    with call.service.store.transaction():
        settle(call.service)
        total = count(call.service, what, call.key.space)[state]
        rows = call.service.store.rows(
            _LISTS[what, state], {"space": call.key.space, "limit": wanted.limit, "offset": wanted.offset}
        )
    return rows, wanted.figures(total)
