"""THE table: what a refusal of the service means, what to do, and how it ends (specification: Errors).

Everything branches on the status and `error_code`, never on `message`. The exit code is the exception's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sealpipe.api import Response
from sealpipe.errors import (
    ApiAccessError,
    AuthenticationError,
    ConnectError,
    IdempotencyConflictError,
    InvalidRequestError,
    KeyAllowanceError,
    MissingScopeError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    ProtocolError,
    QuotaExceededError,
    RateLimitError,
    ServiceError,
    ViewProtectionError,
)

BY_CODE: Mapping[tuple[int, int], type[ServiceError]] = {
    (400, 19): InvalidRequestError,
    (400, 44): InvalidRequestError,
    (400, 104): InvalidRequestError,
    (403, 53): ViewProtectionError,
    (403, 61): QuotaExceededError,
    (403, 78): MissingScopeError,
    (403, 98): ApiAccessError,
    (403, 100): KeyAllowanceError,
    (404, 1): NotFoundError,
    (404, 70): NotFoundError,
    (409, 105): IdempotencyConflictError,
    (409, 106): OutcomeUnknownError,
    (429, 107): RateLimitError,
    (500, 11): OutcomeUnknownError,
    (500, 42): OutcomeUnknownError,
}
"""What the specification names."""

BY_STATUS: Mapping[int, type[ServiceError]] = {
    400: InvalidRequestError,
    403: PermissionDeniedError,
    404: NotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
}
"""An error envelope with a code that the specification does not know, and what gateways answer on their own."""

GATEWAY: Mapping[int, type[ServiceError]] = {401: AuthenticationError, 403: AuthenticationError, 407: ConnectError}
"""Without an `error_code`: the gateway's `message` (401) and `Message` (403), a proxy that wants a login (407)."""

NOT_CARRIED_OUT = frozenset({19, 53, 61, 105})
"""Codes that are answered after the look for a replay: they prove that no earlier sending was carried out
(`gaps.md`, order of checks; only 2xx answers are stored under a key)."""


def make_service_error(answer: Response, scope: str | None = None) -> ServiceError:
    """The exception for an answer that is not 2xx. `scope` is what the call needs: the service does not name it."""
    members = _parse_members(answer.body)
    code = _read_code(members)
    kind = _choose_error(answer.status, code)
    data = members.get("additional_data")
    is_scope_missing = issubclass(kind, MissingScopeError) and scope is not None
    return kind(
        _describe_refusal(answer, members, code),
        remedy=f"create an API key with the scope {scope}, and revoke this one" if is_scope_missing else None,
        status=answer.status,
        error_code=code,
        additional_data=data if isinstance(data, dict) else None,
        retry_after=parse_retry_after(answer.headers.get("retry-after")),
    )


def read_error_code(answer: Response) -> int | None:
    """The `error_code` of an error's body; None where it has none: then it is not the service itself that answered."""
    return _read_code(_parse_members(answer.body))


def _read_code(members: Mapping[str, Any]) -> int | None:
    code = members.get("error_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _choose_error(status: int, code: int | None) -> type[ServiceError]:
    if code is not None and (status, code) in BY_CODE:
        return BY_CODE[status, code]
    if code is None and status in GATEWAY:
        return GATEWAY[status]
    if status >= 500 or status in (408, 425):
        return OutcomeUnknownError
    if code is not None or status in (413, 429):
        return BY_STATUS.get(status, ProtocolError)
    return ProtocolError


def _describe_refusal(answer: Response, members: Mapping[str, Any], code: int | None) -> str:
    service_message = members.get("message", members.get("Message"))
    quotation = f": {escape_text(service_message)}" if isinstance(service_message, str) and service_message else ""
    if 300 <= answer.status < 400:
        return f"the service answered with a redirect ({answer.status}), which is never followed"
    if code is None and answer.status == 407:
        return "the proxy requires authentication"
    if code is None and answer.status in GATEWAY:
        return f"the service does not accept the credential ({answer.status}{quotation})"
    status_text = f"{answer.status}, error_code {code}" if code is not None else f"{answer.status}"
    return (
        f"the service refused ({status_text}){quotation}"
        if answer.status < 500
        else f"the service failed ({status_text}){quotation}"
    )


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait by a Retry-After header: digits or an HTTP date; None for anything else."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII):
        return float(text)
    from email.utils import parsedate_to_datetime  # most headers are digits

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def escape_text(text: str, limit: int = 500) -> str:
    """Text from outside with its control characters escaped, and cut to `limit` characters."""
    escaped = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text[:limit])
    return escaped + ("..." if len(text) > limit else "")


def _parse_members(body: bytes) -> Mapping[str, Any]:
    """The members of an error's body; none where it is no JSON object (a gateway's HTML, nothing at all)."""
    try:
        value = json.loads(str(body, "utf-8-sig"))  # as in `reading`: nothing but UTF-8
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
