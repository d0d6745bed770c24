"""What owners read about their account: lists by page, stats, capabilities, access logs.

The specification has neither capabilities nor access log: not every service offers them. A service
without them responds with 404 without an `error_code`, or its gateway responds instead. Both mean
"not offered": the result is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple, TypeVar

from sealpipe.api import responses
from sealpipe.api.operation import Operation, Resend, Response, is_success
from sealpipe.api.responses import read_error_code
from sealpipe.errors import ProtocolError
from sealpipe.parsing import format_optional_time
from sealpipe.wire.link import called

T = TypeVar("T")

NOT_OFFERED_STATUSES = frozenset({401, 403, 404})


@dataclass(frozen=True, slots=True)
class ShareInfo:
    """A share's metadata (specification: Share metadata, Share list item).

    `expires_at` is None for a share without an expiry, and if the service did not say: then
    `expiry_known` is False.
    """

    short_code: str
    expires_at: datetime | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    """One attempt to open a share; members are None if the service did not say."""

    accessed_at: datetime | None
    accessed_ip: str | None
    platform: str | None
    user_agent: str | None
    failed_passcode: bool | None
    signed_in: bool | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessLog:
    """A page of a share's access log. `next_cursor` leads to the next page; None on the last one.

    The log covers `effective_from` to `effective_to`; the plan keeps it for `retention_days`.
    """

    short_code: str
    entries: tuple[Access, ...]
    next_cursor: str | None = None
    retention_days: int | None = None
    effective_from: datetime | None = None
    effective_to: datetime | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the key and the plan allow, as the service says. In `limits`, -1 means no limit.

    `key` has `key_id scopes custody_level organization_id rate_limit_rpm`, `plan` has `code name`,
    `features` has a boolean by name. Members that the service leaves out are absent here, too.
    """

    api_version: str | None
    key: Mapping[str, Any]
    plan: Mapping[str, Any]
    limits: Mapping[str, Any]
    features: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_custody(self) -> bool | None:
        """Whether the key has a custody level above `none`; None if the service does not say."""
        level = self.key.get("custody_level")
        return None if level is None else level not in (0, "0", "none")


def get_access_log(
    short_code: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Operation[AccessLog | None]:
    """GET /v1/shares/{shortCode}/access-log: one page, or None if it is not offered.

    Scope `audit:read`.
    """
    filters = {
        "limit": None if limit is None else str(limit),
        "cursor": cursor,
        "from": format_optional_time(since),
        "to": format_optional_time(until),
    }
    return Operation(
        name="read the access log",
        method="GET",
        path=f"/shares/{called(short_code)}/access-log",
        resend=Resend.READ,
        decode=_decode_if_offered(_decode_log),
        query={name: value for name, value in filters.items() if value is not None},
        is_settled=_is_settled,
    )


def get_capabilities() -> Operation[Capabilities | None]:
    """GET /v1/capabilities (no scope); None if it is not offered."""
    return Operation(
        "read the capabilities",
        "GET",
        "/capabilities",
        Resend.READ,
        _decode_if_offered(_decode_capabilities),
        is_settled=_is_settled,
    )


def _is_settled(response: Response) -> bool:
    # With an `error_code` the service itself refuses: 404/1 is an unknown share, 403/78 a missing
    # scope.
    return is_success(response) or (
        response.status in NOT_OFFERED_STATUSES and read_error_code(response) is None
    )


def _decode_if_offered(decode: Callable[[dict[str, Any]], T]) -> Callable[[Response], T | None]:
    def read(result: Response) -> T | None:
        return decode(responses.parse_object(result)) if is_success(result) else None

    return read


def _decode_log(members: dict[str, Any]) -> AccessLog:
    if "entries" not in members:
        raise ProtocolError("the service's access log has no entries")
    known = (
        "short_code",
        "entries",
        "next_cursor",
        "retention_days",
        "effective_from",
        "effective_to",
    )
    return AccessLog(
        responses.read_short_code(members),
        tuple(map(_decode_access, responses.read_rows(members, "entries"))),
        responses.read_text(members, "next_cursor") or None,
        responses.read_int(members, "retention_days"),
        responses.read_time(members, "effective_from"),
        responses.read_time(members, "effective_to"),
        responses.select_unknown(members, *known),
    )


def _decode_access(row: dict[str, Any]) -> Access:
    known = ("accessed_at", "accessed_ip", "platform", "user_agent", "failed_passcode", "signed_in")
    return Access(
        responses.read_time(row, "accessed_at"),
        responses.read_text(row, "accessed_ip"),
        responses.read_text(row, "platform"),
        responses.read_text(row, "user_agent"),
        responses.read_bool(row, "failed_passcode"),
        responses.read_bool(row, "signed_in"),
        responses.select_unknown(row, *known),
    )


def _decode_capabilities(members: dict[str, Any]) -> Capabilities:
    names = ("key", "plan", "limits", "features")
    key, plan, limits, features = (responses.read_object(members, name) for name in names)
    unknown = responses.select_unknown(members, "api_version", *names)
    return Capabilities(
        responses.read_text(members, "api_version"), key, plan, limits, features, unknown
    )


class DailyViews(NamedTuple):
    """The views of shares on one day of the service's calendar, or None if it is not known."""

    day: date | None
    views: int | None


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers of active shares, expired shares and all views; None if the service did not say.

    `daily_views` has a row for each of the last 14 days, oldest first. Unknown members are in
    `extra`.
    """

    active: int | None
    expired: int | None
    total_viewed: int | None
    daily_views: tuple[DailyViews, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def get_stats() -> Operation[Stats]:
    """GET /v1/stats."""
    return Operation("read the stats", "GET", "/stats", Resend.READ, _decode_stats)


def _decode_stats(response: Response) -> Stats:
    members = responses.parse_object(response)
    shares = responses.read_object(members, "shares")
    unknown = responses.select_unknown(shares, "active", "expired", "total_viewed")
    return Stats(
        responses.read_int(shares, "active"),
        responses.read_int(shares, "expired"),
        responses.read_int(shares, "total_viewed"),
        tuple(
            DailyViews(_decode_day(row), responses.read_int(row, "count"))
            for row in responses.read_rows(members, "daily_views")
        ),
        {
            **responses.select_unknown(members, "shares", "daily_views"),
            **({"shares": unknown} if unknown else {}),
        },
    )


def _decode_day(row: Mapping[str, Any]) -> date | None:
    text = responses.read_text(row, "date")
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ProtocolError("the service's response has a date that is not a date")
