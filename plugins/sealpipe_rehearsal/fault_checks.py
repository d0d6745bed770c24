"""Checks of one parameter of a fault. Each returns the reason why a value is rejected, or None."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

Check = Callable[[object], str | None]

_LONGEST = 1e6
_LARGEST = 64 * 1024 * 1024
_FRAMING = ("content-length", "transfer-encoding")


def number(lowest: int, highest: int) -> Check:
    """Return a check for an integer in a range; true and 1.0 are rejected."""

    def check(value: object) -> str | None:
        is_valid = (
            isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest
        )
        return None if is_valid else f"must be a whole number from {lowest} to {highest}"

    return check


status = number(200, 599)
size = number(1, _LARGEST)
count = number(0, 2**31 - 1)
code = number(-(2**31), 2**31 - 1)


def seconds(value: object) -> str | None:
    """Check a duration in seconds."""
    is_valid = (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LONGEST
    )
    return None if is_valid else "must be a number of seconds"


def switch(value: object) -> str | None:
    """Check a boolean."""
    return None if isinstance(value, bool) else "must be true or false"


def text(value: object) -> str | None:
    """Check text that can be encoded as UTF-8."""
    try:
        return (
            None if isinstance(value, str) and value.encode("utf-8") is not None else "must be text"
        )
    except UnicodeEncodeError:
        return "must be valid Unicode"


def base64_text(value: object) -> str | None:
    """Check bytes in base64."""
    try:
        return (
            None if base64.b64decode(str(value), validate=True) or value == "" else "must be base64"
        )
    except (binascii.Error, ValueError):
        return "must be base64"


def header_value(value: object) -> str | None:
    """Check a header value: Latin-1 without line breaks or surrounding blanks."""
    reason = "must be text that fits into a header"
    return (
        None
        if isinstance(value, str)
        and re.fullmatch(r"([!-~\x80-\xff]([ -~\t\x80-\xff]*[!-~\x80-\xff])?)?", value)
        else reason
    )


def retry_after(value: object) -> str | None:
    """Check seconds or any text: faults may send an invalid Retry-After."""
    return None if count(value) is None else header_value(value)


def headers(value: object) -> str | None:
    """Check a table of headers. Headers that frame the body are not allowed."""
    if not isinstance(value, dict):
        return "must be a table of headers"
    for name, content in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name.lower() in _FRAMING:
            return f"cannot hold the header {name[:40]!a}"
        if reason := header_value(content):
            return f"{name}: {reason}"
    return None


def table(value: object) -> str | None:
    """Check a table of members for a JSON object."""
    return None if isinstance(value, dict) else "must be a table"


def texts(value: object) -> str | None:
    """Check an array of member names."""
    is_valid = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if is_valid else "must be an array of strings"
