"""The routes of secure requests.

Specification: Endpoints, from POST /v1/requests on; gaps: their bodies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from . import creation, listing
from .clock import format_rfc3339, from_timestamp, parse_rfc3339
from .context import Call, Service
from .database.access import Row
from .json_bodies import ENCRYPTION_TYPE, REQUEST
from .responses import Response, json_response, refuse

PASSCODE_ROUNDS = 20_000
"""About 10 ms: a submitter does not notice, and whoever makes the service compute gains little."""
DEFAULT_EXPIRY = timedelta(days=30)


def create(call: Call) -> Response:
    """POST /v1/requests: create a request, with the same idempotency as shares."""
    return creation.create(
        call,
        "requests",
        REQUEST,
        extra_checks=lambda _, __: {},
        check_plan=lambda _, __: None,
        make_row=_row,
        response_body=_response_body,
    )


def list_requests(call: Call) -> Response:
    """GET /v1/requests: the active ones, newest first (see `listing.page`)."""
    call.service.reach("requests.listing")
    rows, pagination = listing.page(call, "requests")
    return json_response(200, {"requests": [_item(row) for row in rows], "pagination": pagination})


def show(call: Call) -> Response:
    """GET /v1/requests/{shortCode}: changes nothing. An ended request has no public key."""
    row, is_over = _find_owned(call)
    if not is_over:
        return json_response(200, _item(row))
    return json_response(200, {"short_code": row["short_code"], "expired_at": None})


def submissions(call: Call) -> Response:
    """GET /v1/requests/{shortCode}/submissions: oldest first.

    Those without end-to-end encryption are only counted.
    """
    return json_response(200, sealed_submissions(call.service, _find_owned(call)[0]))


def sealed_submissions(service: Service, request: Row) -> dict[str, Any]:
    """Return a request's sealed submissions, oldest first, and the number of others."""
    rows = service.store.submissions(request["number"])
    sealed = [
        {name: each[name] for name in ("short_code", "data", "created_at", "encryption_type")}
        for each in rows
        if each["encryption_type"] == ENCRYPTION_TYPE
    ]
    skipped = len(rows) - len(sealed)
    return {
        "submissions": sealed,
        "count": len(sealed),
        "skipped_not_end_to_end_encrypted": skipped,
    }


def delete(call: Call) -> Response:
    """DELETE /v1/requests/{shortCode}: an active request expires.

    An expired one is deleted with its submissions.
    """
    if not call.codes or not call.codes[0]:
        refuse("no_short_code")
    service, code = call.service, call.codes[0]
    outcome = service.store.delete_request(
        call.key.space, code, lambda: service.reach("request.ending")
    )
    if outcome is None:
        refuse("request_not_found")
    service.reach("request.ended")
    return json_response(200, {"short_code": code, "outcome": outcome})


def _find_owned(call: Call) -> tuple[Row, bool]:
    """Return the caller's request with this code, and whether it has ended; or refuse.

    Ownership is checked before anything else.
    """
    row, is_over = call.service.store.request(call.key.space, call.codes[0])
    if row is None:
        refuse("request_not_found")
    return row, is_over


def _item(row: Row) -> dict[str, str | None]:
    live = row["ended_at"] is None
    return {
        "short_code": row["short_code"],
        "expired_at": row["expired_at"] if live else None,
        "public_key": row["public_key"] if live else None,
    }


def _row(call: Call, members: creation.Members) -> creation.Members:
    """Return the request's columns.

    The passcode is the only secret that arrives in plain text; see `hash_passcode`.
    """
    requested = None if members["expired_at"] is None else parse_rfc3339(members["expired_at"])
    expires = requested or from_timestamp(call.now).replace(microsecond=0) + DEFAULT_EXPIRY
    # Only these two members of a prompt are stored; the default type is the one in the vendor's
    # SDK.
    prompts = [
        {"item": each["item"], "type": each.get("type") or "text"} for each in members["fields"]
    ]
    values = {**members, "fields": prompts}
    passcode = values.pop("passcode")
    lists = ("fields", "restricted_domain", "ip_whitelist")
    return (
        values
        | {name: None if values[name] is None else json.dumps(values[name]) for name in lists}
        | {
            "passcode_sha256": None
            if passcode is None
            else hash_passcode(passcode, values["public_key"]),
            "expired_at": format_rfc3339(expires),
            "expires": expires.timestamp(),
        }
    )


def hash_passcode(passcode: str, public_key: str) -> str:
    """Return what is stored of a passcode: slow to guess from, and for each request anew."""
    secret, salt = passcode.strip().encode(), public_key.encode()
    return hashlib.pbkdf2_hmac("sha256", secret, salt, PASSCODE_ROUNDS).hex()


def _response_body(values: creation.Members) -> Mapping[str, object]:
    return {name: values[name] for name in ("short_code", "expired_at", "public_key")}
