"""Reads the service's untrusted responses: strict JSON bodies, and what a refusal means.

Every `read_*` function raises ProtocolError for a value of another type. Refusals are mapped by
status and `error_code` (specification: Errors), never by `message`; the exception has the exit
code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from sealpipe.api.operation import Response
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
    UsageError,
    ViewProtectionError,
)
from sealpipe.parsing import parse_time

T = TypeVar("T")


def parse_object(response: Response) -> dict[str, Any]:
    """Parse the body as a JSON object.

    Raises ProtocolError, also for NaN, duplicate members and too deep nesting.
    """
    if response.flaw:
        raise ProtocolError(f"the service's response {response.flaw}", status=response.status)
    try:
        # Only as UTF-8: json also reads UTF-16, in which our credential would not have been
        # redacted.
        text = str(response.body, "utf-8-sig")
        value = json.loads(
            text, parse_constant=_refuse, parse_float=_parse_finite, object_pairs_hook=_build_object
        )
    except (ValueError, RecursionError):
        raise ProtocolError("the service's response is not JSON", status=response.status) from None
    if not isinstance(value, dict):
        raise ProtocolError("the service's response is not a JSON object", status=response.status)
    return value


def read_short_code(members: Mapping[str, Any]) -> str:
    """Return the opaque short code: never empty, `.` or `..`, and without control characters."""
    value = members.get("short_code")
    if not isinstance(value, str) or value in ("", ".", "..") or not value.isprintable():
        raise ProtocolError("the service's response has no usable short code")
    return value


def read_time(members: Mapping[str, Any], name: str) -> datetime | None:
    """Return an RFC 3339 time, or None for null or absent."""
    value = members.get(name)
    if value is None:
        return None
    try:
        return parse_time(value)
    except (TypeError, UsageError):
        raise ProtocolError(f"the service's response has a {name} that is not a time") from None


def read_text(members: Mapping[str, Any], name: str) -> str | None:
    """Return a string, or None for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"the service's response has a {name} that is not text")
    return value


def read_int(members: Mapping[str, Any], name: str) -> int | None:
    """Return an integer, or None for null or absent."""
    value = members.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ProtocolError(f"the service's response has a {name} that is not an integer")
    return value


def read_bool(members: Mapping[str, Any], name: str) -> bool | None:
    """Return a boolean, or None for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, bool):
        raise ProtocolError(f"the service's response has a {name} that is neither true nor false")
    return value


def read_object(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object's members; none for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, dict):
        raise ProtocolError(f"the service's response has a {name} that is not an object")
    return value or {}


def read_rows(members: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return an array of objects; empty for null or absent."""
    value = members.get(name)
    if value is not None and (
        not isinstance(value, list) or not all(isinstance(row, dict) for row in value)
    ):
        raise ProtocolError(f"the service's response has a {name} that is not an array of objects")
    return value or []


def select_unknown(members: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the unknown members, unchanged."""
    return {name: value for name, value in members.items() if name not in known}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _parse_finite(number: str) -> float:
    value = float(number)
    # 1e999: JSON could not express it again.
    return value if math.isfinite(value) else _refuse(number)


def _parse_finite_or_text(number: str) -> float | str:
    value = float(number)
    return value if math.isfinite(value) else number


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is repeated")
    return members


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
"""The combinations of status and `error_code` that the specification names."""

BY_STATUS: Mapping[int, type[ServiceError]] = {
    400: InvalidRequestError,
    403: PermissionDeniedError,
    404: NotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
}
"""For an `error_code` that the specification does not name, and for responses of gateways."""

GATEWAY: Mapping[int, type[ServiceError]] = {
    401: AuthenticationError,
    403: AuthenticationError,
    407: ConnectError,
}
"""Without an `error_code`: the gateway's `message` (401) and `Message` (403), a proxy that requires
a login (407).
"""

NOT_CARRIED_OUT = frozenset({19, 53, 61, 105})
"""Codes that prove that no earlier attempt was carried out: the service checks for a replay before
it sends them, and stores only 2xx responses under an idempotency key."""


def make_service_error(
    response: Response, scope: str | None = None, subject: str = ""
) -> ServiceError:
    """Return the exception for a response that is not 2xx.

    `scope` is what the call needs, and `subject` the share or request that it names: the service
    does not say.
    """
    members = _parse_members(response.body)
    code = _read_code(members)
    kind = _choose_error(response.status, code)
    data = members.get("additional_data")
    is_scope_missing = issubclass(kind, MissingScopeError) and scope is not None
    message = _describe_refusal(response, members, code)
    if subject and (response.status, code) in ((404, 1), (404, 70)):
        message = f"there is no {subject}: {message}"
    return kind(
        message,
        remedy=f"create an API key with the scope {scope}, and revoke this one"
        if is_scope_missing
        else None,
        status=response.status,
        error_code=code,
        additional_data=data if isinstance(data, dict) else None,
        retry_after=parse_retry_after(response.headers.get("retry-after")),
    )


def read_error_code(response: Response) -> int | None:
    """Return a body's `error_code`, or None: then the service itself did not send it."""
    return _read_code(_parse_members(response.body))


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


def _describe_refusal(response: Response, members: Mapping[str, Any], code: int | None) -> str:
    service_message = members.get("message", members.get("Message"))
    quoted_message = (
        f": {escape_text(service_message)}"
        if isinstance(service_message, str) and service_message
        else ""
    )
    if 300 <= response.status < 400:
        return f"the service responded with a redirect ({response.status}), which is never followed"
    if code is None and response.status == 407:
        return "the proxy requires authentication"
    if code is None and response.status in GATEWAY:
        return f"the service does not accept the credential ({response.status}{quoted_message})"
    status_text = (
        f"{response.status}, error_code {code}" if code is not None else f"{response.status}"
    )
    return (
        f"the service refused ({status_text}){quoted_message}"
        if response.status < 500
        else f"the service failed ({status_text}){quoted_message}"
    )


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds of a Retry-After header (digits or an HTTP date), or None."""
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII):
        return float(text)
    moment = _parse_http_date(text)
    if moment is None or moment.tzinfo is None:
        return None
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def read_clock(headers: Mapping[str, str]) -> datetime | None:
    """Return the service's time from its `Date` header; None if there is none."""
    server_time = _parse_http_date(headers.get("date", ""))
    if server_time is None or server_time.tzinfo is None:
        return None if server_time is None else server_time.replace(tzinfo=UTC)
    try:
        return server_time.astimezone(UTC)
    except OverflowError:  # the first or the last day that a datetime can tell
        return None


def _parse_http_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # most responses need none

    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def escape_text(text: str, limit: int = 500) -> str:
    """Escape the control characters of untrusted text, and cut it to `limit` characters."""
    escaped = "".join(
        character if character.isprintable() else repr(character)[1:-1]
        for character in text[:limit]
    )
    return escaped + ("..." if len(text) > limit else "")


def _parse_members(body: bytes) -> Mapping[str, Any]:
    """Return the members of an error's body, or none if it is not a JSON object."""
    try:
        # Only UTF-8, as in `parse_object`. What JSON cannot express again becomes text.
        value = json.loads(
            str(body, "utf-8-sig"), parse_constant=str, parse_float=_parse_finite_or_text
        )
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
