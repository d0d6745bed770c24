"""The routes behind a request's links, outside /v1.

The submitter's form and the requester's submissions.

The form requires the passcode, if there is one, and uses an access. Submissions are sealed to the
request's public key; the service never has the key that opens them.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from . import requests
from .checks import filled_text, standard_base64, switch
from .clock import format_rfc3339, from_timestamp
from .context import HttpRequest, Service
from .database.access import Row
from .database.decisions import QuotaError
from .json_bodies import ENCRYPTION_TYPE, Rule, read_object, rejected
from .responses import RefusalError, Response, json_response
from .shares import sha256_hex

_FULL = {
    "reason": "full",
    "message": "the request has reached its maximum number of submissions, or their length",
}
_NOT_FOUND = {"reason": "not-found", "message": "the request does not exist"}
_IDENTITY = {
    "passcode": Rule(filled_text),
    "signed_in_as": Rule(filled_text),
    "mfa": Rule(switch),
    "from_ip": Rule(filled_text),
}
_SUBMISSION = {
    **_IDENTITY,
    "data": Rule(standard_base64, required=True),
    "encryption_type": Rule(filled_text),
}


def show_state(service: Service, code: str) -> Response:
    """GET /links/requests/{code}: whether it accepts submissions and needs a passcode.

    Uses no access.
    """
    row, is_over = service.store.request_at_link(code)
    if row is None:
        return json_response(404, _NOT_FOUND)
    return _end_response(row, is_over=is_over) or json_response(
        200,
        {
            "short_code": code,
            "account": row["owner"],
            "title": row["title"],
            "passcode_required": row["passcode_sha256"] is not None,
            "expired_at": row["expired_at"],
            "accesses_left": row["access_counts_left"],
        },
    )


def open_form(service: Service, code: str, http_request: HttpRequest) -> Response:
    """POST /links/requests/{code}/open: the form, if the conditions are met. Uses an access."""

    def show(row: Row, _: Mapping[str, Any]) -> Response:
        if service.store.open_form(row["number"]) is None:
            return _refused_at_last(service, code) or json_response(
                410,
                {
                    "reason": "accesses",
                    "message": "the form was opened the maximum number of times",
                },
            )
        form = {
            name: row[name]
            for name in ("short_code", "title", "description", "public_key", "expired_at")
        }
        return json_response(200, form | {"fields": json.loads(row["fields"])})

    return _admit(service, code, http_request, _IDENTITY, show)


def submit(service: Service, code: str, http_request: HttpRequest) -> Response:
    """POST /links/requests/{code}/submit: store a sealed submission."""

    def store_submission(row: Row, members: Mapping[str, Any]) -> Response:
        values = {
            "encryption_type": members.get("encryption_type") or ENCRYPTION_TYPE,
            "data": members["data"],
        }
        try:
            submission = service.store.submit(
                row["number"],
                lambda now: {**values, "created_at": format_rfc3339(from_timestamp(now))},
                service.new_code,
            )
        except QuotaError:
            return json_response(410, _FULL)
        if submission is None:
            return _refused_at_last(service, code) or json_response(404, _NOT_FOUND)
        service.deliverer.wake()  # a notice may wait
        return json_response(201, {"short_code": submission})

    return _admit(service, code, http_request, _SUBMISSION, store_submission)


def list_submissions(service: Service, code: str) -> Response:
    """GET /links/requests/{code}/submissions: sealed ones, even of an expired request."""
    row, is_over = service.store.request_at_link(code)
    if row is None:
        return json_response(404, _NOT_FOUND)
    sealed = requests.sealed_submissions(service, row)
    body = {name: row[name] for name in ("short_code", "title", "public_key", "max_submission")}
    expired_at = None if is_over else row["expired_at"]
    received = sealed["count"] + sealed["skipped_not_end_to_end_encrypted"]
    return json_response(200, {**body, **sealed, "expired_at": expired_at, "received": received})


def _admit(
    service: Service,
    code: str,
    http_request: HttpRequest,
    rules: Mapping[str, Rule],
    handle: Callable[[Row, Mapping[str, Any]], Response],
) -> Response:
    try:
        members = read_object(http_request.body)
    except RefusalError as refused:
        return refused.response
    if reasons := rejected(rules, members):
        return json_response(400, {"reason": "invalid", "message": "rejected", "members": reasons})
    row, is_over = service.store.request_at_link(code)
    if row is None:
        return json_response(404, _NOT_FOUND)
    # Conditions never change; whether it is open, and for how many, the store decides again.
    return (
        _end_response(row, is_over=is_over)
        or _refuse_too_many(service, code, http_request)
        or _refuse_submitter(row, _known_of(service, http_request, members))
        or handle(row, members)
    )


FORMS_A_MINUTE = 30
"""How often the form of a request is opened or sent a minute, with a right passcode or a wrong one:
twice as often at once. A rehearsal has no such limit, for its people are tests.
"""
FORMS_OF_ADDRESS = 12
"""The same of one address, so that it leaves room for others: the longest body fits at once."""
BYTES_A_TIME = 1024 * 1024
"""So many count as one time more of an address, so that it fills no disk in an hour."""


def _refuse_too_many(service: Service, code: str, http_request: HttpRequest) -> Response | None:
    if service.is_rehearsal:
        return None
    takes = [(f"form {code}", FORMS_A_MINUTE, 1)]
    if http_request.stranger is not None:
        name = f"form {sha256_hex(f'{code} {http_request.stranger}')}"  # no address is stored
        times = 1 + len(http_request.body) // BYTES_A_TIME
        takes = [(name, FORMS_OF_ADDRESS, times), *takes]
    waits = (
        service.store.take(bucket, per_minute, service.store.now(), amount)
        for bucket, per_minute, amount in takes
    )
    wait = next(filter(None, waits), 0)
    if not wait:
        return None
    body = {"reason": "too-many", "message": "too many tries at this request: try again later"}
    return replace(json_response(429, body), headers=(("retry-after", str(wait)),))


def _refused_at_last(service: Service, code: str) -> Response | None:
    """Return why a request took no more, though it did when it was looked at."""
    row, is_over = service.store.request_at_link(code)
    return json_response(404, _NOT_FOUND) if row is None else _end_response(row, is_over=is_over)


def _end_response(row: Row, *, is_over: bool) -> Response | None:
    if is_over:
        return json_response(410, {"reason": "expired", "message": "the request has expired"})
    if row["max_submission"] is not None and row["received"] >= row["max_submission"]:
        return json_response(410, _FULL)
    return None


def _known_of(
    service: Service, http_request: HttpRequest, members: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what is known of a submitter.

    Only in a rehearsal they say so themselves. A server has no accounts for them, so it never knows
    who they are, and a request that wants to know is closed to all.
    """
    if service.is_rehearsal:
        return members
    return {"passcode": members.get("passcode"), "from_ip": http_request.address}


def _refuse_submitter(row: Row, members: Mapping[str, Any]) -> Response | None:
    """Return a refusal for the first condition that the submitter does not meet, or None."""
    email = str(members.get("signed_in_as") or "")
    address = str(members.get("from_ip") or "127.0.0.1")
    domains = json.loads(row["restricted_domain"] or "[]")
    conditions = {
        "passcode": row["passcode_sha256"] is None or _is_passcode(members.get("passcode"), row),
        "login": not row["requires_login"] or bool(email),
        "mfa": not row["requires_mfa"] or members.get("mfa") is True,
        "domain": not domains
        or email.rpartition("@")[2].lower() in [domain.lower() for domain in domains],
        "address": not row["ip_whitelist"] or _within(address, json.loads(row["ip_whitelist"])),
    }
    for reason, is_met in conditions.items():
        if not is_met:
            return json_response(
                403, {"reason": reason, "message": f"this request is not open to you: {reason}"}
            )
    return None


def _is_passcode(value: object, row: Row) -> bool:
    if not isinstance(value, str):
        return False
    sent = requests.hash_passcode(value, row["public_key"])
    return hmac.compare_digest(sent, row["passcode_sha256"])


def _within(address: str, networks: list[str]) -> bool:
    try:
        sender = ipaddress.ip_address(address)
        return any(sender in ipaddress.ip_network(network, strict=False) for network in networks)
    except ValueError:
        return False
