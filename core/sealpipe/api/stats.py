"""GET /v1/stats: figures only (specification: Stats; its shape: `gaps.md`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from sealpipe.api import reading
from sealpipe.api.operation import Answer, Operation, Resend
from sealpipe.errors import ProtocolError


class DailyViews(NamedTuple):
    """How often shares were viewed on one day, by the service's calendar; None where it did not say."""

    day: date | None
    views: int | None


@dataclass(frozen=True, slots=True)
class Stats:
    """Shares that can be opened, that are over, and all views together; None where the service did not say.

    `daily_views` are the last 14 days, oldest first, a row for each. Members that we do not know are in `extra`.
    """

    active: int | None
    expired: int | None
    total_viewed: int | None
    daily_views: tuple[DailyViews, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def get() -> Operation[Stats]:
    """GET /v1/stats."""
    return Operation("read the stats", "GET", "/stats", Resend.READ, _stats)


def _stats(answer: Answer) -> Stats:
    members = reading.json_object(answer)
    shares = reading.mapping(members, "shares")
    unknown = reading.rest(shares, "active", "expired", "total_viewed")
    return Stats(
        reading.whole(shares, "active"),
        reading.whole(shares, "expired"),
        reading.whole(shares, "total_viewed"),
        tuple(DailyViews(_day(row), reading.whole(row, "count")) for row in reading.rows(members, "daily_views")),
        {**reading.rest(members, "shares", "daily_views"), **({"shares": unknown} if unknown else {})},
    )


def _day(row: Mapping[str, Any]) -> date | None:
    text = reading.text(row, "date")
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ProtocolError("the service's answer has a date that is no day")
