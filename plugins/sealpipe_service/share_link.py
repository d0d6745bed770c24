"""The routes behind a share's link, outside /v1: how the recipient gets the ciphertext.

No API route returns a share's content, so the page needs routes of its own. The recipient sends the
access token, and the passcode verifier if one is set.
"""

from __future__ import annotations

from . import extended, listing
from .checks import text
from .context import HttpRequest, Service
from .database.access import Row
from .json_bodies import read_object
from .responses import RefusalError, Response, json_response
from .shares import hash_verifier, sha256_hex

_NOT_FOUND = {"reason": "not-found", "message": "the share does not exist"}
_END_MESSAGES = {
    "deleted": "the share was expired by its sender",
    "views": "all views of the share are used up",
    "attempts": "all passcode attempts of the share are used up",
    "time": "the share has expired",
}


def show_state(service: Service, code: str) -> Response:
    """GET /links/shares/{code}: whether it can be opened and needs a passcode. Uses no view."""
    row, ended_by = service.store.share_at_link(code)
    if row is None:
        return json_response(404, _NOT_FOUND)
    if ended_by is not None:
        return _ended(ended_by)
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
    """POST /links/shares/{code}/open: the ciphertext for the right token and verifier."""
    try:
        members = read_object(http_request.body)
    except RefusalError as refused:
        return refused.response
    token, verifier = (_text(members.get(name)) for name in ("access_token", "passcode_verifier"))
    opening = service.store.open_share(
        code,
        sha256_hex(token),
        hash_verifier(verifier, token),
        extended.access(service, http_request),
    )
    row = opening.share
    if row is None:
        reason = str(opening.reason)
        return json_response(404, _NOT_FOUND) if reason == "not-found" else _ended(reason)
    if opening.reason is not None:
        listing.notify(service, row, "denied")
        return json_response(
            403,
            {
                "reason": "passcode-wrong"
                if members.get("passcode_verifier")
                else "passcode-required",
                "message": "the passcode is missing or wrong",
                "attempts_left": row["passcode_attempts_left"],
            },
        )
    listing.notify(service, row, "viewed")
    return json_response(200, _content(row))


def _content(row: Row) -> dict[str, object]:
    names = ("short_code", "encryption_type", "data", "title", "description", "expired_at")
    return {
        **{name: row[name] for name in names},
        "timed_view": row["timed_view"],
        "views_left": row["access_counts_left"],
    }


def _ended(reason: str) -> Response:
    return json_response(410, {"reason": reason, "message": _END_MESSAGES[reason]})


def _text(value: object) -> str:
    """Return a text; of anything else, one that no token and no verifier is."""
    return value if isinstance(value, str) and text(value) is None else ""
