"""Converts the values for a sink's store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sealpipe.plugin import Locator, ReferenceValueError, SinkField, UnsupportedError

_STORE_AS_BASE64: Final = (
    "give it as base64 text (encode=base64 in its source), and read it with decode=base64"
)


def values_by_key(fields: Sequence[SinkField], locator: Locator) -> dict[str, bytes]:
    """Return the values by key.

    Raises ReferenceValueError (repeated key), UnsupportedError (lone surrogate).
    """
    values: dict[str, bytes] = {}
    for key, value in fields:
        if key in values:
            raise ReferenceValueError(
                f"{locator}: a key is named twice", remedy="name each key once"
            )
        try:
            values[key] = value.reveal_bytes()
        except UnicodeEncodeError:
            break
    if len(values) < len(fields):
        raise UnsupportedError(f"{locator}: a value is not Unicode text", remedy=_STORE_AS_BASE64)
    return values


def decode_text(value: bytes, locator: Locator) -> str:
    """Return a value as text, for a store that holds only text. Raises UnsupportedError."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    raise UnsupportedError(
        f"{locator} holds text only, and a value is not UTF-8", remedy=_STORE_AS_BASE64
    )


def variable_values(
    locator: Locator, fields: Sequence[SinkField], name: re.Pattern[str], rule: str
) -> dict[str, str]:
    """Return the values of environment variables, by name.

    `rule` is the remedy for an invalid name.

    Raises ReferenceValueError for an invalid name, UnsupportedError for a value that a variable
    cannot hold.
    """
    values: dict[str, str] = {}
    for key, value in fields:
        if not key:
            raise ReferenceValueError(
                f"{locator} has no key to store the value under",
                remedy=f"name one: {locator}#PASSWORD=PROMPT",
            )
        if not name.fullmatch(key):
            raise ReferenceValueError(f"{locator}: {key!a} is not a valid name", remedy=rule)
        values[key] = _variable_text(value.reveal_bytes(), f"the value for {key} of {locator}")
    return values


def _variable_text(value: bytes, what: str) -> str:
    if b"\0" in value:
        raise UnsupportedError(
            f"{what} has a NUL character, which a variable of a job cannot hold", remedy=_ELSEWHERE
        )
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    raise UnsupportedError(f"{what} is not UTF-8 text", remedy=_ELSEWHERE)


_ELSEWHERE: Final = "give it as base64 text (encode=base64 in its source), or use a sink for files"
