"""The share routes (specification: Endpoints, from POST /v1/shares to DELETE /v1/shares/{shortCode})."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from sqlite3 import Row

from . import creating, events, listing
from .clock import format_rfc3339, parse_rfc3339
from .context import Call
from .log import Event
from .refusals import Answer, answer, refuse
from .rules import SHARE, SHARE_EXTENDED

PASSCODE_ATTEMPTS = 5


def create(call: Call) -> Answer:
    """POST /v1/shares."""
    rules = SHARE_EXTENDED if call.service.extended else SHARE
    return creating.create(call, "shares", rules, further=_wrap, plan=_plan, row=_row, told=_told)


def list_shares(call: Call) -> Answer:
    """GET /v1/shares: newest first, without what is no longer usable (see `listing.page`)."""
    rows, figures = listing.page(call, "shares")
    return answer(200, {"shares": [_metadata(row) for row in rows], "pagination": figures})


def show(call: Call) -> Answer:
    """GET /v1/shares/{shortCode}: two members; spends no view. A deleted share is not there any more."""
    row = call.service.store.row(
        """SELECT short_code, expired_at FROM shares
           WHERE short_code = :code AND space = :space AND ended_by IS NOT 'deleted'""",
        {"code": call.codes[0], "space": call.key.space},
    )
    if row is None:
        refuse("share_not_found")
    return answer(200, _metadata(row))


def delete(call: Call) -> Answer:
    """DELETE /v1/shares/{shortCode}: ends it at once. Whatever ended before, in any way, is 404."""
    code = call.codes[0] if call.codes else ""
    if not code:
        refuse("no_short_code")
    service = call.service
    with service.store.transaction():
        listing.settle(service)
        row = service.store.row(
            """SELECT number, owner, short_code, notify_on FROM shares
               WHERE short_code = :code AND space = :space AND ended_at IS NULL""",
            {"code": code, "space": call.key.space},
        )
        if row is None:
            refuse("share_not_found")
        service.fail_at("share.expiring", "share_not_expired")
        service.store.change(
            "UPDATE shares SET ended_at = :now, ended_by = 'deleted' WHERE number = :number",
            {"number": row["number"], "now": service.clock.timestamp()},
        )
        # The owner's endpoints get the event, whoever of a team made the call.
        payload = {"event": "share.deleted", "short_code": code}
        events.notify(service, row, "deleted")
        queued = events.queue(service.store, row["owner"], payload, service.clock.timestamp())
    service.at("delete.committed")
    service.log.event(Event(service.clock.now(), row["owner"], payload))
    if queued:
        service.deliverer.wake()
    return answer(200, {"success": True, "message": "ok"})


def sha256_hex(value: str) -> str:
    """SHA-256 of the trimmed value, in hex: all that is kept of an access token, a verifier or a passcode."""
    return hashlib.sha256(value.strip().encode("utf-8")).hexdigest()


def _metadata(row: Row) -> dict[str, str | None]:
    return {"short_code": row["short_code"], "expired_at": row["expired_at"]}


def _wrap(call: Call, members: creating.Members) -> dict[str, str]:
    if members.get("item_key_wrap") is not None and call.key.custody_level == 0:
        return {"item_key_wrap": "is not accepted from a key whose custody level is none"}
    return {}


def _plan(call: Call, members: creating.Members) -> None:
    limits = call.account.limits
    if members["passcode_verifier"] is not None and not limits.view_protection:
        refuse("no_view_protection")
    if limits.shares is not None:
        listing.settle(call.service)
        if listing.count(call.service, "shares", call.key.space)["live"] >= limits.shares:
            refuse("quota_used_up")


def _row(call: Call, members: creating.Members) -> creating.Members:
    """The share's columns: of token and verifier only hashes, the wrap only where it can be stored."""
    custody = "none"
    if members["item_key_wrap"] is not None:
        custody = "stored" if call.account.stores_wraps else "failed"
    expires = None if members["expired_at"] is None else parse_rfc3339(members["expired_at"])
    values = dict(members)
    token, verifier = values.pop("access_token"), values.pop("passcode_verifier")
    return values | {
        "access_token_sha256": sha256_hex(token),
        "passcode_verifier_sha256": None if verifier is None else sha256_hex(verifier),
        "expired_at": None if expires is None else format_rfc3339(expires),
        "expires": None if expires is None else expires.timestamp(),
        "passcode_attempts_left": PASSCODE_ATTEMPTS,
        "item_key_wrap": values["item_key_wrap"] if custody == "stored" else None,
        "custody": custody,
        "notify_on": None if values.get("notify_on") is None else json.dumps(values["notify_on"]),
    }


def _told(values: creating.Members) -> Mapping[str, object]:
    return {name: values[name] for name in ("short_code", "expired_at", "custody")}
