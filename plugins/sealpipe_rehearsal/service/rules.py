"""The members of a share create body, one rule each (specification: Share create body; gaps: further ones).

Where the specification gives no bound, none is invented, but for numbers that could mean nothing: a count
of views or of seconds is at least 1. What `data` holds inside is never looked at (rule 6). A member that is
null counts as left out; a member that no rule names is ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from .clock import parse_rfc3339
from .refusals import refuse

ENCRYPTION_TYPE = "e2ee-aes256-gcm"
NOTIFY_ON = ("viewed", "denied", "expired", "deleted")

Check = Callable[[object], str | None]  # the reason for which a value is rejected, or None

_LARGEST = 2**63 - 1


def text(value: object) -> str | None:
    """Any text that can be written as UTF-8."""
    if not isinstance(value, str):
        return "must be a string"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "must be valid Unicode"
    return None


def filled_text(value: object) -> str | None:
    """Text with something in it."""
    return text(value) or (None if str(value).strip() else "must not be empty")


def encryption_type(value: object) -> str | None:
    """The one scheme there is."""
    return None if value == ENCRYPTION_TYPE else f"must be {ENCRYPTION_TYPE}"


def matching(pattern: str, reason: str) -> Check:
    """Text of a given form, blanks around it allowed."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: object) -> str | None:
        return text(value) or (None if compiled.fullmatch(str(value).strip()) else reason)

    return check


def standard_base64(value: object) -> str | None:
    """Standard base64 with padding."""
    reason = filled_text(value)
    if reason is None:
        try:
            base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            reason = "must be standard base64 with padding"
    return reason


def count(value: object) -> str | None:
    """An integer of at least 1; true and 1.0 are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return "must be an integer"
    return None if 1 <= value <= _LARGEST else "is out of range"


def rfc3339(value: object) -> str | None:
    """A moment with its zone."""
    return None if isinstance(value, str) and parse_rfc3339(value) else "must be an RFC 3339 time"


def notify_on(value: object) -> str | None:
    """Known events, each at most once."""
    if not isinstance(value, list) or not all(isinstance(event, str) for event in value):
        return "must be an array of strings"
    if unknown := sorted(set(value) - set(NOTIFY_ON)):
        return f"holds an unknown event: {unknown[0]!a}"
    return None if len(set(value)) == len(value) else "must not repeat an event"


@dataclass(frozen=True)
class Rule:
    """What a member has to be."""

    check: Check
    required: bool = False


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
    "timed_view": Rule(count),
    "notify_on": Rule(notify_on),
    "organization_id": Rule(filled_text),
}


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, refused with 19 where there is none."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_not_json)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        # No member to blame: additional_data is there, and empty.
        refuse("validation", {})
    return value


def rejected(rules: Mapping[str, Rule], members: Mapping[str, Any]) -> dict[str, str]:
    """Every member that breaks its rule, with the reason."""
    reasons = {}
    for name, rule in rules.items():
        value = members.get(name)
        missing = "is required" if rule.required else None
        reason = missing if value is None else rule.check(value)
        if reason is not None:
            reasons[name] = reason
    return reasons


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
