"""Checks of one member of a body. Each returns the reason why a value is rejected, or None.

The limits are those of the specification, plus one: a count of views or seconds is at least 1.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from .clock import parse_rfc3339

Check = Callable[[object], str | None]
Schema = Mapping[str, Any]

_LARGEST = 2**63 - 1

SCHEMAS: dict[Check, Schema] = {}
"""What each check accepts, as JSON Schema, for `openapi`.

A schema may accept more than its check.
"""


def accepts(**schema: Any) -> Callable[[Check], Check]:
    """Register a check's JSON Schema."""

    def with_schema(check: Check) -> Check:
        SCHEMAS[check] = schema
        return check

    return with_schema


@accepts(type="string")
def text(value: object) -> str | None:
    """Check text that can be encoded as UTF-8."""
    if not isinstance(value, str):
        return "must be a string"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "must be valid Unicode"
    return None


# Blanks are listed explicitly: regular expressions of other languages disagree about `\s`.
_FILLED = r"[^\s\u001c-\u001f\u0085\ufeff]"


@accepts(type="string", pattern=_FILLED)
def filled_text(value: object) -> str | None:
    """Check text that is not blank."""
    return text(value) or (None if re.search(_FILLED, str(value)) else "must not be empty")


def matching(pattern: str, reason: str) -> Check:
    """Return a check for text that matches a pattern; surrounding blanks are allowed."""
    compiled = re.compile(pattern, re.ASCII)

    @accepts(type="string", pattern=rf"^\s*(?:{pattern})\s*$")
    def check(value: object) -> str | None:
        return text(value) or (None if compiled.fullmatch(str(value).strip()) else reason)

    return check


_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$"


@accepts(type="string", pattern=_BASE64, contentEncoding="base64")
def standard_base64(value: object) -> str | None:
    """Check standard base64 with padding."""
    reason = filled_text(value)
    if reason is None:
        try:
            base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            reason = "must be standard base64 with padding"
    return reason


@accepts(type="integer", minimum=1, maximum=_LARGEST)
def count(value: object) -> str | None:
    """Check an integer of at least 1; true and 1.0 are rejected."""
    if not isinstance(value, int) or isinstance(value, bool):
        return "must be an integer"
    return None if 1 <= value <= _LARGEST else "is out of range"


@accepts(type="string", format="date-time")
def rfc3339(value: object) -> str | None:
    """Check an RFC 3339 time."""
    return None if isinstance(value, str) and parse_rfc3339(value) else "must be an RFC 3339 time"


@accepts(type="boolean")
def switch(value: object) -> str | None:
    """Check a boolean."""
    return None if isinstance(value, bool) else "must be true or false"


@accepts(type="array", items=SCHEMAS[filled_text])
def texts(value: object) -> str | None:
    """Check an array of strings that are not blank."""
    is_valid = isinstance(value, list) and all(filled_text(each) is None for each in value)
    return None if is_valid else "must be an array of strings"


# The curve's generator serves as the example.
_GENERATOR = (
    "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
)


@accepts(type="string", pattern="^[A-Za-z0-9_-]{87}$", examples=[_GENERATOR])
def p256_point(value: object) -> str | None:
    """Check base64url of an uncompressed P-256 point.

    Specification: Custody public key, step 4.
    """
    reason = "must be base64url of a 65-byte uncompressed P-256 point"
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{87}", value, re.ASCII):
        return reason
    point = base64.urlsafe_b64decode(value + "=")
    x, y = int.from_bytes(point[1:33]), int.from_bytes(point[33:])
    on_curve = x < _P and y < _P and (y * y - (x * x * x - 3 * x + _B)) % _P == 0
    return None if point[0] == 4 and on_curve else reason


_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
