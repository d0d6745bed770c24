"""The routes behind a share's link, outside /v1: how the recipient gets the ciphertext.

No API route returns a share's content, so the page needs routes of its own. The recipient sends the
access token, and the passcode verifier if one is set.
"""

from __future__ import annotations

import hmac
from sqlite3 import Row

from . import extended, listing
from .context import HttpRequest, Service
from .json_bodies import read_object
from .responses import RefusalError, Response, json_response
from .shares import count_view, sha256_hex

_NOT_FOUND = {"reason": "not-found", "message": "the share does not exist"}
_END_MESSAGES = {
    "deleted": "the share was expired by its sender",
    "views": "all views of the share are used up",
    "attempts": "all passcode attempts of the share are used up",
    "time": "the share has expired",
}
_SPEND_VIEW = """
UPDATE shares SET access_counts_left = access_counts_left - 1,
    ended_at = CASE access_counts_left WHEN 1 THEN :now END,
    ended_by = CASE access_counts_left WHEN 1 THEN 'views' END
WHERE number = :number
"""
_SPEND_ATTEMPT = """
UPDATE shares SET passcode_attempts_left = passcode_attempts_left - 1,
    ended_at = CASE passcode_attempts_left WHEN 1 THEN :now END,
    ended_by = CASE passcode_attempts_left WHEN 1 THEN 'attempts' END
WHERE number = :number
"""


def show_state(service: Service, code: str) -> Response:
    """GET /rehearsal/shares/{code}: whether it can be opened and needs a passcode. Uses no view."""
    row = _find(service, code)
    if row is None:
        return json_response(404, _NOT_FOUND)
    if end_response := _end_response(service, row):
        return end_response
    verifier_hash = row["passcode_verifier_sha256"] is not None
    return json_response(
        200,
        {
            "short_code": row["short_code"],
            "expired_at": row["expired_at"],
            "passcode_required": verifier_hash,
            "attempts_left": row["passcode_attempts_left"] if verifier_hash else None,
            "timed_view": row["timed_view"],
            "views_left": row["access_counts_left"],
        },
    )


def open_share(service: Service, code: str, http_request: HttpRequest) -> Response:
    """POST /rehearsal/shares/{code}/open: the ciphertext for the right token and verifier."""
    try:
        members = read_object(http_request.body)
    except RefusalError as refused:
        return refused.response
    with service.store.transaction():
        row = _find(service, code)
        # without the token nothing is revealed, not even that the share exists
        if row is None or not matches_hash(members.get("access_token"), row["access_token_sha256"]):
            return json_response(404, _NOT_FOUND)
        if end_response := _end_response(service, row):
            return end_response
        spend = {"number": row["number"], "now": service.clock.timestamp()}
        verifier_hash = row["passcode_verifier_sha256"]
        if verifier_hash is not None and not matches_hash(
            members.get("passcode_verifier"), verifier_hash
        ):
            service.store.change(_SPEND_ATTEMPT, spend)
            extended.record(service, row, http_request, failed=True)
            listing.notify(service, row, "denied")
            return json_response(
                403,
                {
                    "reason": "passcode-wrong"
                    if members.get("passcode_verifier")
                    else "passcode-required",
                    "message": "the passcode is missing or wrong",
                    "attempts_left": row["passcode_attempts_left"] - 1,
                },
            )
        if row["access_counts_left"] is not None:
            service.store.change(_SPEND_VIEW, spend)
        count_view(service, row["space"])
        extended.record(service, row, http_request, failed=False)
        listing.notify(service, row, "viewed")
    return json_response(200, _content(row))


def _content(row: Row) -> dict[str, object]:
    left = row["access_counts_left"]
    return {
        "short_code": row["short_code"],
        "encryption_type": row["encryption_type"],
        "data": row["data"],
        "title": row["title"],
        "description": row["description"],
        "expired_at": row["expired_at"],
        "timed_view": row["timed_view"],
        "views_left": None if left is None else left - 1,
    }


def _find(service: Service, code: str) -> Row | None:
    return service.store.row("SELECT * FROM shares WHERE short_code = :code", {"code": code})


def _end_response(service: Service, row: Row) -> Response | None:
    reason = row["ended_by"]
    if (
        reason is None
        and row["expires"] is not None
        and row["expires"] <= service.clock.timestamp()
    ):
        reason = "time"
    return (
        None
        if reason is None
        else json_response(410, {"reason": reason, "message": _END_MESSAGES[reason]})
    )


def matches_hash(value: object, sha256: str) -> bool:
    """Return whether a value has this SHA-256 (hex), compared in constant time."""
    if not isinstance(value, str):
        return False
    try:
        return hmac.compare_digest(sha256_hex(value), sha256)
    except UnicodeEncodeError:
        return False
