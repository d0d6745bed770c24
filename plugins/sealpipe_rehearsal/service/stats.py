"""GET /v1/stats: figures only (gaps: their shape)."""

from __future__ import annotations

from datetime import timedelta

from . import listing
from .context import Call, Service
from .refusals import Answer, answer

DAYS = 14


def show(call: Call) -> Answer:
    """How many shares are active and have ended, how often any was viewed, and the views of 14 days, oldest first."""
    service, space = call.service, call.key.space
    with service.store.transaction():
        listing.settle(service)
        shares = listing.count(service, "shares", space)
        rows = service.store.rows("SELECT day, count FROM views WHERE space = :space", {"space": space})
    views = {row["day"]: row["count"] for row in rows}
    today = service.clock.now().date()
    days = [(today - timedelta(days=ago)).isoformat() for ago in reversed(range(DAYS))]
    return answer(
        200,
        {
            "shares": {"active": shares["live"], "expired": shares["ended"], "total_viewed": sum(views.values())},
            "daily_views": [{"date": day, "count": views.get(day, 0)} for day in days],
        },
    )


def viewed(service: Service, space: str) -> None:
    """Count a view, on the day that it is by the service's clock (UTC)."""
    service.store.change(
        """INSERT INTO views VALUES (:space, :day, 1)
           ON CONFLICT (space, day) DO UPDATE SET count = count + 1""",
        {"space": space, "day": service.clock.now().date().isoformat()},
    )
