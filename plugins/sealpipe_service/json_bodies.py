"""Reads a JSON body strictly, with the rules of both create bodies.

Specification: Share create body; gaps: requests.

The content of `data` is never checked (POST /v1/shares, rule 6), and a request without fields is
accepted. A null member counts as missing; an unknown one is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from .checks import (
    SCHEMAS,
    Check,
    accepts,
    count,
    filled_text,
    matching,
    p256_point,
    rfc3339,
    standard_base64,
    switch,
    text,
    texts,
)
from .responses import refuse

DEEPEST = 500
"""Levels of nesting. Stored JSON is encoded again, and Python's recursion limit is about a thousand
calls.
"""


def read_json(body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises ValueError for invalid JSON (not UTF-8, NaN) and for deep nesting.
    """
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_not_json)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [each for one in level for each in _members(one)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _members(value: Any) -> list[Any]:
    members = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return [each for each in members if isinstance(each, (dict, list))]


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


@dataclass(frozen=True)
class Rule:
    """The check of a member, and whether it is required."""

    check: Check
    required: bool = False


MEDIA_TYPE = "application/json"


def media_type(header: str) -> str:
    """Return the media type of a Content-Type or of a part of Accept, without its parameters."""
    return header.partition(";")[0].strip().lower()


def require_json(content_type: str | None) -> None:
    """Refuse a body that does not say that it is JSON, with 19 (gaps: content type of bodies)."""
    if media_type(content_type or "") != MEDIA_TYPE:
        refuse("validation", {})  # no single member is invalid


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body. Refuses anything else with 19."""
    try:
        value = read_json(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # no single member is invalid: additional_data is present and empty
        refuse("validation", {})
    return value


def rejected(rules: Mapping[str, Rule], members: Mapping[str, Any]) -> dict[str, str]:
    """Return the members that break their rule, with the reasons."""
    reasons = {}
    for name, rule in rules.items():
        value = members.get(name)
        missing = "is required" if rule.required else None
        reason = missing if value is None else rule.check(value)
        if reason is not None:
            reasons[name] = reason
    return reasons


ENCRYPTION_TYPE = "e2ee-aes256-gcm"
NOTIFY_ON = ("viewed", "denied", "expired", "deleted")
FIELD_TYPES = ("text", "password", "date", "multiline", "markdown", "source_code")
FIELD_TYPES_EXTENDED = (*FIELD_TYPES, "url", "qr")
"""Includes types that the specification omits (gaps: field types, further)."""


@accepts(const=ENCRYPTION_TYPE)
def encryption_type(value: object) -> str | None:
    """Check the encryption type; there is only one."""
    return None if value == ENCRYPTION_TYPE else f"must be {ENCRYPTION_TYPE}"


@accepts(type="array", items={"enum": [*NOTIFY_ON]}, uniqueItems=True)
def notify_on(value: object) -> str | None:
    """Check an array of known events, each at most once."""
    if not isinstance(value, list) or not all(isinstance(event, str) for event in value):
        return "must be an array of strings"
    if unknown := sorted(set(value) - set(NOTIFY_ON)):
        return f"holds an unknown event: {unknown[0]!a}"
    return None if len(set(value)) == len(value) else "must not repeat an event"


_PROMPT = {
    "type": "object",
    "properties": {
        "item": SCHEMAS[filled_text],
        "type": {"anyOf": [SCHEMAS[filled_text], {"type": "null"}]},
    },
    "required": ["item"],
}


@accepts(type="array", items=_PROMPT)
def prompts(value: object) -> str | None:
    """Check the fields of a request: prompt (`item`, not `key`) and type, by default `text`."""
    if not isinstance(value, list):
        return "must be an array"
    for number, field in enumerate(value, 1):
        kind = field.get("type") if isinstance(field, dict) else None
        if (
            not isinstance(field, dict)
            or filled_text(field.get("item"))
            or (kind is not None and filled_text(kind))
        ):
            return (
                f"field {number} must be an object with the text item, and the text type where "
                "it has one"
            )
    return None


SHARE: Mapping[str, Rule] = {
    "encryption_type": Rule(encryption_type, required=True),
    "data": Rule(filled_text, required=True),
    "access_token": Rule(
        matching(r"[A-Za-z0-9_-]{43}", "must be 43 characters of base64url without padding"),
        required=True,
    ),
    "passcode_verifier": Rule(matching(r"[A-Za-z0-9_-]+", "must be base64url without padding")),
    "title": Rule(text),
    "description": Rule(text),
    "expired_at": Rule(rfc3339),
    "access_counts_left": Rule(count),
    "item_key_wrap": Rule(standard_base64),
}

SHARE_EXTENDED: Mapping[str, Rule] = {
    **SHARE,
    "timed_view": Rule(count),
    "notify_on": Rule(notify_on),
    "organization_id": Rule(filled_text),
}
"""Includes members that the specification omits (gaps: share create, further optional members)."""


REQUEST: Mapping[str, Rule] = {
    "title": Rule(filled_text, required=True),
    "public_key": Rule(p256_point, required=True),
    "fields": Rule(prompts, required=True),
    "description": Rule(text),
    "expired_at": Rule(rfc3339),
    "max_submission": Rule(count),
    "access_counts_left": Rule(count),
    "passcode": Rule(filled_text),
    "requires_login": Rule(switch),
    "requires_mfa": Rule(switch),
    "restricted_domain": Rule(texts),
    "ip_whitelist": Rule(texts),
    "organization_id": Rule(filled_text),
}
