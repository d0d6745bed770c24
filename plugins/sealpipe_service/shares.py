"""The share routes.

Specification: Endpoints, from POST /v1/shares to DELETE /v1/shares/{shortCode}.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta

from . import creation, listing
from .clock import format_rfc3339, from_timestamp, parse_rfc3339
from .context import Call
from .database.access import Row
from .journal import Event
from .json_bodies import SHARE, SHARE_EXTENDED
from .plans import account_from
from .responses import Response, as_json, json_response, refuse

PASSCODE_ATTEMPTS = 5
DAYS = 14


def create(call: Call) -> Response:
    """POST /v1/shares: create a share."""
    rules = SHARE_EXTENDED if call.service.extended else SHARE
    return creation.create(
        call,
        "shares",
        rules,
        extra_checks=_check_wrap,
        check_plan=_check_plan,
        make_row=_row,
        response_body=_response_body,
        most=call.account.limits.shares,
    )


def list_shares(call: Call) -> Response:
    """GET /v1/shares: newest first, only usable ones (see `listing.page`)."""
    rows, pagination = listing.page(call, "shares")
    return json_response(
        200, {"shares": [_metadata(row) for row in rows], "pagination": pagination}
    )


def show(call: Call) -> Response:
    """GET /v1/shares/{shortCode}: two members; uses no view. A deleted share is 404."""
    row = call.service.store.share(call.key.space, call.codes[0])
    if row is None:
        refuse("share_not_found")
    return json_response(200, _metadata(row))


def delete(call: Call) -> Response:
    """DELETE /v1/shares/{shortCode}: expire a share at once. 404 if it has ended."""
    code = call.codes[0] if call.codes else ""
    if not code:
        refuse("no_short_code")
    service = call.service
    # The event goes to the owner's endpoints, even if a team key made the call.
    payload = {"event": "share.deleted", "short_code": code}
    row = service.store.delete_share(
        call.key.space,
        code,
        as_json(payload),
        # Webhooks share the API's plan entitlement: without it nothing is sent.
        lambda owner, plan: account_from(owner, plan).api_access,
        lambda: service.reach("share.expiring"),
    )
    if row is None:
        refuse("share_not_found")
    listing.notify(service, row, "deleted")
    service.reach("delete.committed")
    service.log.add_event(Event(service.clock.now(), row["owner"], payload))
    service.deliverer.wake()
    return json_response(200, {"success": True, "message": "ok"})


def show_stats(call: Call) -> Response:
    """GET /v1/stats: active and ended shares, all views, views of the last 14 days, oldest first.

    Gaps: shape.
    """
    live, ended, views = call.service.store.stats(call.key.space)
    today = from_timestamp(call.now).date()
    days = [(today - timedelta(days=ago)).isoformat() for ago in reversed(range(DAYS))]
    return json_response(
        200,
        {
            "shares": {"active": live, "expired": ended, "total_viewed": sum(views.values())},
            "daily_views": [{"date": day, "count": views.get(day, 0)} for day in days],
        },
    )


def sha256_hex(value: str) -> str:
    """Return the SHA-256 (hex) of the stripped value.

    Of an access token, only this is stored.
    """
    return hashlib.sha256(value.strip().encode("utf-8")).hexdigest()


def hash_verifier(verifier: str, token: str) -> str:
    """Return what is stored of a passcode's verifier: a hash of it and the share's access token.

    A passcode can be guessed, but whoever copied the database has no token to check a guess with.
    """
    return sha256_hex(f"{token.strip()}.{verifier.strip()}")


def _metadata(row: Row) -> dict[str, str | None]:
    return {"short_code": row["short_code"], "expired_at": row["expired_at"]}


def _check_wrap(call: Call, members: creation.Members) -> dict[str, str]:
    if members.get("item_key_wrap") is not None and call.key.custody_level == 0:
        return {"item_key_wrap": "is not accepted from a key whose custody level is none"}
    return {}


def _check_plan(call: Call, members: creation.Members) -> None:
    limits = call.account.limits
    if members["passcode_verifier"] is not None and not limits.view_protection:
        refuse("no_view_protection")


def _row(call: Call, members: creation.Members) -> creation.Members:
    """Return the share's columns.

    Hashes of token and verifier, and the wrap only if it can be stored.
    """
    custody = "none"
    if members["item_key_wrap"] is not None:
        custody = "stored" if call.account.stores_wraps else "failed"
    expires = None if members["expired_at"] is None else parse_rfc3339(members["expired_at"])
    values = dict(members)
    token, verifier = values.pop("access_token"), values.pop("passcode_verifier")
    return values | {
        "access_token_sha256": sha256_hex(token),
        "passcode_verifier_sha256": None if verifier is None else hash_verifier(verifier, token),
        "expired_at": None if expires is None else format_rfc3339(expires),
        "expires": None if expires is None else expires.timestamp(),
        "passcode_attempts_left": PASSCODE_ATTEMPTS,
        "item_key_wrap": values["item_key_wrap"] if custody == "stored" else None,
        "custody": custody,
        "notify_on": None if values.get("notify_on") is None else json.dumps(values["notify_on"]),
    }


def _response_body(values: creation.Members) -> Mapping[str, object]:
    return {name: values[name] for name in ("short_code", "expired_at", "custody")}
