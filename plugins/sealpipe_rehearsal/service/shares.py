"""The share routes (specification: Endpoints, from POST /v1/shares to DELETE /v1/shares/{shortCode})."""

from __future__ import annotations

import base64
import hashlib
import json
from sqlite3 import IntegrityError, Row
from typing import Any

from . import idempotency, rules
from .clock import format_rfc3339, parse_rfc3339
from .context import Call
from .log import Event
from .paging import read_page
from .refusals import Answer, answer, as_json, refuse

PASSCODE_ATTEMPTS = 5

# `ended_at` is written when a share is deleted or used up; time alone ends one without a write.
_LIVE = "account = :account AND ended_at IS NULL AND (expires IS NULL OR expires > :now)"
_ENDED = "account = :account AND (ended_at IS NOT NULL OR expires <= :now)"
_LISTS = {
    "active": (
        f"SELECT COUNT(*) FROM shares WHERE {_LIVE}",  # noqa: S608  # constants of this module
        f"""SELECT short_code, expired_at FROM shares WHERE {_LIVE}
            ORDER BY number DESC LIMIT :limit OFFSET :offset""",  # noqa: S608  # as above
    ),
    "expired": (
        f"SELECT COUNT(*) FROM shares WHERE {_ENDED}",  # noqa: S608  # as above
        f"""SELECT short_code, expired_at FROM shares WHERE {_ENDED}
            ORDER BY MIN(IFNULL(ended_at, expires), IFNULL(expires, ended_at)) DESC, number DESC
            LIMIT :limit OFFSET :offset""",  # noqa: S608  # as above
    ),
}


def create(call: Call) -> Answer:
    """POST /v1/shares: idempotency header, replay, validation, plan; then the share."""
    service, incoming = call.service, call.incoming
    name = idempotency.required(incoming.header("idempotency-key"))
    now = service.clock.timestamp()
    with idempotency.claim(service.in_flight, service.store, call.key.key_id, name, incoming.body, now) as claim:
        if claim.replay is not None:
            return Answer(200, claim.replay)
        service.at("create.begun")
        members = _valid_members(call)
        if members.get("passcode_verifier") is not None and not call.account.view_protection:
            refuse("no_view_protection")
        stored = _store(call, members, claim)
        service.at("create.committed")
    return Answer(201, stored)


def list_shares(call: Call) -> Answer:
    """GET /v1/shares: newest first, without what is no longer usable; `status=expired` lists what ended."""
    count, select = _LISTS["expired" if call.incoming.query.get("status") == "expired" else "active"]
    page = read_page(call.incoming.query)
    values = {
        "account": call.account.name,
        "now": call.service.clock.timestamp(),
        "limit": page.limit,
        "offset": page.offset,
    }
    with call.service.store.transaction():
        total = call.service.store.rows(count, values)[0][0]
        rows = call.service.store.rows(select, values)
    return answer(200, {"shares": [_metadata(row) for row in rows], "pagination": page.figures(total)})


def show(call: Call) -> Answer:
    """GET /v1/shares/{shortCode}: two members; spends no view. A deleted share is not there any more."""
    row = call.service.store.row(
        """SELECT short_code, expired_at FROM shares
           WHERE short_code = :code AND account = :account AND ended_by IS NOT 'deleted'""",
        {"code": call.codes[0], "account": call.account.name},
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
    changed = service.store.change(
        f"UPDATE shares SET ended_at = :now, ended_by = 'deleted' WHERE short_code = :code AND {_LIVE}",  # noqa: S608  # a constant
        {"code": code, "account": call.account.name, "now": service.clock.timestamp()},
    )
    if not changed:
        refuse("share_not_found")
    service.at("delete.committed")
    payload = {"event": "share.deleted", "short_code": code}
    service.log.event(Event(service.clock.now(), call.account.name, payload))
    return answer(200, {"success": True, "message": "ok"})


def _metadata(row: Row) -> dict[str, str | None]:
    return {"short_code": row["short_code"], "expired_at": row["expired_at"]}


def _valid_members(call: Call) -> dict[str, Any]:
    members = rules.read_object(call.incoming.body)
    reasons = rules.rejected(rules.SHARE, members)
    if members.get("item_key_wrap") is not None and call.key.custody_level == 0:
        reasons["item_key_wrap"] = "is not accepted from a key whose custody level is none"
    if reasons:
        refuse("validation", reasons)
    return {name: members.get(name) for name in rules.SHARE}


def _custody(call: Call, members: dict[str, Any]) -> str:
    if members["item_key_wrap"] is None:
        return "none"
    return "stored" if call.account.stores_wraps else "failed"


def _store(call: Call, members: dict[str, Any], claim: idempotency.Claim) -> bytes:
    """The share and the record of its answer, both or neither. Returns the answer's bytes."""
    service = call.service
    expires = None if members["expired_at"] is None else parse_rfc3339(members["expired_at"])
    custody = _custody(call, members)
    verifier = members["passcode_verifier"]
    now = service.clock.timestamp()
    values = {
        **members,
        "account": call.account.name,
        "key_id": call.key.key_id,
        "created_at": now,
        "access_token_sha256": sha256_hex(members["access_token"]),
        "passcode_verifier_sha256": None if verifier is None else sha256_hex(verifier),
        "expired_at": None if expires is None else format_rfc3339(expires),
        "expires": None if expires is None else expires.timestamp(),
        "passcode_attempts_left": PASSCODE_ATTEMPTS,
        "item_key_wrap": members["item_key_wrap"] if custody == "stored" else None,
        "custody": custody,
        "notify_on": None if members["notify_on"] is None else json.dumps(members["notify_on"]),
    }
    with service.store.transaction():
        code = _insert(call, values)
        stored = as_json({"short_code": code, "expired_at": values["expired_at"], "custody": custody})
        claim.record(service.store, stored, now)
    return stored


def _insert(call: Call, values: dict[str, Any]) -> str:
    while True:
        code = base64.urlsafe_b64encode(call.service.token_bytes(9)).decode("ascii")
        try:
            call.service.store.change(_INSERT, {**values, "short_code": code})
        except IntegrityError:
            continue  # taken: draw another one
        return code


def sha256_hex(value: str) -> str:
    """SHA-256 of the trimmed value, in hex: all that is kept of an access token or a verifier."""
    return hashlib.sha256(value.strip().encode("utf-8")).hexdigest()


_INSERT = """
INSERT INTO shares (
    short_code, account, key_id, created_at, encryption_type, data, access_token_sha256,
    passcode_verifier_sha256, title, description, expired_at, expires, access_counts_left,
    passcode_attempts_left, item_key_wrap, custody, timed_view, notify_on, organization_id
) VALUES (
    :short_code, :account, :key_id, :created_at, :encryption_type, :data, :access_token_sha256,
    :passcode_verifier_sha256, :title, :description, :expired_at, :expires, :access_counts_left,
    :passcode_attempts_left, :item_key_wrap, :custody, :timed_view, :notify_on, :organization_id
)
"""
