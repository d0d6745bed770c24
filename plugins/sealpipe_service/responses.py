"""Responses, and ONE table of all refusals (specification: Errors, Authentication failures)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn


@dataclass(frozen=True)
class Response:
    """A response: status, JSON body, additional headers.

    `reason` is for the log: one of this program's own words for why a call was refused.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    reason: str | None = None


HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every answer; a page has more (see `pages`)."""


def as_json(value: object) -> bytes:
    """Return compact JSON, ASCII-escaped only if it holds a lone surrogate (from a fault plan)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def json_response(status: int, value: object) -> Response:
    """Return a response with a bare JSON value (specification: Response envelopes)."""
    reason = value.get("reason") if isinstance(value, dict) and status >= 400 else None
    return Response(status, as_json(value), reason=reason)


@dataclass(frozen=True)
class Refusal:
    """One row of the specification's table of errors."""

    status: int
    error_code: int
    message: str


REFUSALS: Mapping[str, Refusal] = {
    "validation": Refusal(400, 19, "Validation failed"),
    "no_short_code": Refusal(400, 44, "A short code is required in the path"),
    "idempotency_key_missing": Refusal(400, 104, "The Idempotency-Key header is required"),
    "no_view_protection": Refusal(403, 53, "Your plan does not include view protection"),
    "quota_used_up": Refusal(403, 61, "Your plan's allowance of shares is used up"),
    "no_api_access": Refusal(403, 98, "Your plan does not include API access"),
    "key_allowance": Refusal(403, 100, "Your plan's allowance of API keys is reached"),
    "scope_missing": Refusal(403, 78, "You are not allowed to do this"),
    "share_not_found": Refusal(404, 1, "Share not found"),
    "idempotency_other_body": Refusal(
        409, 105, "This Idempotency-Key was used with a different body"
    ),
    "idempotency_in_flight": Refusal(
        409, 106, "A request with this Idempotency-Key is still in flight"
    ),
    "request_not_found": Refusal(404, 70, "Request not found"),
    "rate_limited": Refusal(429, 107, "Rate limit exceeded"),
    "share_not_expired": Refusal(500, 42, "The share could not be expired"),
    "request_failed": Refusal(500, 11, "The request could not be read, expired or deleted"),
}

# The gateway does not use the service's envelope. All unusable credentials get the SAME response,
# so that it does not reveal which key ids exist.
_GATEWAY: Mapping[str, Response] = {
    "no_authorization": json_response(401, {"message": "Unauthorized"}),
    "not_usable": json_response(
        403, {"Message": "User is not authorized to access this resource with an explicit deny"}
    ),
    "no_route": json_response(404, {"message": "Not Found"}),
    "broken": json_response(500, {"message": "Internal Server Error"}),
    "unavailable": Response(
        503, as_json({"message": "Service Unavailable"}), (("retry-after", "1"),)
    ),
    "too_long": json_response(413, {"message": "Request Too Long"}),
}
GATEWAY: Mapping[str, Response] = {
    name: replace(response, reason=name) for name, response in _GATEWAY.items()
}


class RefusalError(Exception):  # caught and turned into a response
    """Ends a call with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def make_refusal(
    name: str,
    additional_data: Mapping[str, str] | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Response:
    """Return a row of REFUSALS, in the flat error envelope."""
    row = REFUSALS[name]
    envelope: dict[str, object] = {
        "success": False,
        "message": row.message,
        "error_code": row.error_code,
    }
    if additional_data is not None:
        envelope["additional_data"] = dict(additional_data)
    return Response(row.status, as_json(envelope), headers, name)


def refuse(
    name: str,
    additional_data: Mapping[str, str] | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> NoReturn:
    """Refuse with a row of REFUSALS."""
    raise RefusalError(make_refusal(name, additional_data, headers))


def refuse_at_gateway(name: str) -> NoReturn:
    """Refuse with a row of GATEWAY."""
    raise RefusalError(GATEWAY[name])
