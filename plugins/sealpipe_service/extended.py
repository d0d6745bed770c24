"""The routes of an `extended` service only: access log and capabilities (gaps: newer endpoints).

An ended share keeps its log: it stays in the account's history (specification: Share, states).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from .clock import format_rfc3339, from_timestamp, parse_rfc3339
from .context import Call, HttpRequest, Service
from .database.access import Row
from .database.decisions import Access
from .json_bodies import NOTIFY_ON
from .listing import read_limit
from .plans import NO_LIMIT
from .responses import Response, as_json, refuse

SCOPE = "audit:read"
DEFAULT_LIMIT, MAX_LIMIT = 50, 100

# Order matters: the user agent of Android contains Linux, too.
_PLATFORMS = {
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iOS",
    "Windows": "Windows",
    "Mac OS": "macOS",
}
_PLATFORMS |= {"Macintosh": "macOS", "CrOS": "ChromeOS", "Linux": "Linux"}

_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def access(service: Service, http_request: HttpRequest) -> Access | None:
    """Return who opens a share, if the service has access logs. Nobody is signed in here."""
    if not service.extended:
        return None
    agent = http_request.header("user-agent")
    return Access(http_request.address, platform(agent or ""), agent)


def platform(user_agent: str) -> str:
    """Return the platform that a user agent names."""
    return next((name for part, name in _PLATFORMS.items() if part in user_agent), "unknown")


def access_log(call: Call) -> Response:
    """GET /v1/shares/{shortCode}/access-log: newest first, within the plan's retention."""
    share = call.service.store.share_of(call.key.space, call.codes[0])
    if share is None:
        refuse("share_not_found")
    query = call.http_request.query
    now = from_timestamp(call.now).replace(microsecond=0)
    since, until, before = _read_bounds(query)
    days = call.account.limits.access_log_days
    oldest = now - timedelta(days=days)
    since, until = max(since or oldest, oldest), min(until or now, now)
    limit = read_limit(query, DEFAULT_LIMIT, MAX_LIMIT)
    # bounds are whole seconds; the current second is included
    end = until.timestamp() + (1 if until == now else 0)
    bounds = {"before": before, "since": since.timestamp(), "until": end}
    rows = call.service.store.accesses(share["number"], bounds, limit + 1)
    body = {
        "short_code": share["short_code"],
        "entries": [_entry(row) for row in rows[:limit]],
        "next_cursor": _make_cursor(rows[limit - 1]["number"]) if len(rows) > limit else None,
        "retention_days": days,
        "effective_from": format_rfc3339(since),
        "effective_to": format_rfc3339(until),
    }
    return respond_with_etag(call, body)


def _entry(row: Row) -> dict[str, object]:
    body: dict[str, object] = {
        name: row[name] for name in ("accessed_at", "accessed_ip", "platform", "user_agent")
    }
    return body | {name: bool(row[name]) for name in ("failed_passcode", "signed_in")}


def _read_bounds(query: Mapping[str, str]) -> tuple[datetime | None, datetime | None, int]:
    """Return start time, end time and the entry to continue before.

    Refuses invalid ones with 19.
    """
    times = {name: parse_rfc3339(query[name]) for name in ("from", "to") if name in query}
    before = _read_cursor(query["cursor"]) if query.get("cursor") else 2**62
    reasons = {name: "must be an RFC 3339 time" for name, moment in times.items() if moment is None}
    if before is None:
        reasons["cursor"] = "must be a next_cursor of this log"
    since, until = times.get("from"), times.get("to")
    if since and until and since > until:
        reasons["from"] = "must not be after to"
    if reasons or before is None:
        refuse("validation", reasons)
    return since, until, before


def _make_cursor(number: int) -> str:
    return base64.urlsafe_b64encode(str(number).encode("ascii")).decode("ascii")


def _read_cursor(cursor: str) -> int | None:
    try:
        number = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except (binascii.Error, ValueError):
        return None
    return int(number) if _NUMBER.fullmatch(number) else None


API_VERSION = "1"


def capabilities(call: Call) -> Response:
    """GET /v1/capabilities: needs no scope; -1 means no limit."""
    key, account, service = call.key, call.account, call.service
    limits = account.limits
    live, _, _ = service.store.stats(key.space)
    body: dict[str, object] = {
        "api_version": API_VERSION,
        "key": {
            "key_id": key.key_id,
            "scopes": sorted(key.scopes),
            "custody_level": key.custody_level,
            "custody_public_key": key.custody_public_key,
            "compromised": key.compromised_at is not None,
            "organization_id": key.organization,
            "rate_limit_rpm": limits.requests_per_minute or 0,
        },
        "plan": {"code": account.plan, "name": account.plan.capitalize()},
        "limits": {
            "max_shares": NO_LIMIT if limits.shares is None else limits.shares,
            "remaining_shares": NO_LIMIT if limits.shares is None else max(0, limits.shares - live),
            "max_fields": NO_LIMIT,
            "max_days_access_logs": limits.access_log_days,
            "max_api_keys": NO_LIMIT if limits.api_keys is None else limits.api_keys,
            "max_webhooks": limits.webhooks,
        },
        "features": {
            "secure_requests": True,
            "view_protection": limits.view_protection,
            "zero_knowledge": account.stores_wraps,
        },
        "sharing_policy": None,
        "field_types": list(service.field_types),
        "notify_on_events": list(NOTIFY_ON),
    }
    if not service.is_rehearsal:
        body["service"] = {"name": "sealpipe server", "version": service.version}
    return respond_with_etag(call, body)


def respond_with_etag(call: Call, value: object) -> Response:
    """Respond with the value and its ETag, or 304 if the caller has this version."""
    body = as_json(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    known_tags = [
        each.strip().removeprefix("W/")
        for each in (call.http_request.header("if-none-match") or "").split(",")
    ]
    headers = (("etag", tag), ("cache-control", "private, no-cache"))
    return (
        Response(304, b"", headers)
        if tag in known_tags or "*" in known_tags
        else Response(200, body, headers)
    )
