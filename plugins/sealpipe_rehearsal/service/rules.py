"""The members of the two create bodies, one rule each (specification: Share create body; gaps: requests).

What `data` holds inside is never looked at (POST /v1/shares, rule 6), and a request without any field is
accepted: both show only when somebody opens the link.
"""

from __future__ import annotations

from collections.abc import Mapping

from .checks import (
    SCHEMAS,
    Rule,
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

ENCRYPTION_TYPE = "e2ee-aes256-gcm"
NOTIFY_ON = ("viewed", "denied", "expired", "deleted")
FIELD_TYPES = ("text", "password", "date", "multiline", "markdown", "source_code", "url", "qr")


@accepts(const=ENCRYPTION_TYPE)
def encryption_type(value: object) -> str | None:
    """The one scheme there is."""
    return None if value == ENCRYPTION_TYPE else f"must be {ENCRYPTION_TYPE}"


@accepts(type="array", items={"enum": [*NOTIFY_ON]}, uniqueItems=True)
def notify_on(value: object) -> str | None:
    """Known events, each at most once."""
    if not isinstance(value, list) or not all(isinstance(event, str) for event in value):
        return "must be an array of strings"
    if unknown := sorted(set(value) - set(NOTIFY_ON)):
        return f"holds an unknown event: {unknown[0]!a}"
    return None if len(set(value)) == len(value) else "must not repeat an event"


_PROMPT = {
    "type": "object",
    "properties": {"item": SCHEMAS[filled_text], "type": {"anyOf": [SCHEMAS[filled_text], {"type": "null"}]}},
    "required": ["item"],
}


@accepts(type="array", items=_PROMPT)
def prompts(value: object) -> str | None:
    """The fields of a request: what is asked for (`item`, not `key`), and of which type; left out, it is `text`."""
    if not isinstance(value, list):
        return "must be an array"
    for number, field in enumerate(value, 1):
        kind = field.get("type") if isinstance(field, dict) else None
        if not isinstance(field, dict) or filled_text(field.get("item")) or (kind is not None and filled_text(kind)):
            return f"field {number} must be an object with the text item, and the text type where it has one"
    return None


SHARE: Mapping[str, Rule] = {
    "encryption_type": Rule(encryption_type, required=True),
    "data": Rule(filled_text, required=True),
    "access_token": Rule(
        matching(r"[A-Za-z0-9_-]{43}", "must be 43 characters of base64url without padding"), required=True
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
"""With what the specification does not show (gaps: share create, further optional members): `extended` only."""


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
