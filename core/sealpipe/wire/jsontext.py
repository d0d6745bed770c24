"""JSON text, strict: what a browser would write is what comes in and what goes out.

Python's json takes NaN, repeated names and lone surrogates, and lets RecursionError out; its errors carry
the whole text. Here a text that loads can be written again, byte for byte where it is compact: the members'
order and the spelling of numbers are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import NoReturn

from sealpipe.errors import EncodingError
from sealpipe.wire import jsonspelling

DEPTH_LIMIT = 100
"""Levels of arrays and objects, the outermost included. A fixed number: Python's own differs by version."""

_MESSAGES = {
    "not-utf8": "the text is not UTF-8",
    "not-json": "the text is not JSON",
    "not-finite": "NaN and Infinity are not JSON",
    "duplicate-member": "an object has two members of one name",
    "lone-surrogate": "half a surrogate pair is not text",
    "too-deep": f"more than {DEPTH_LIMIT} levels of arrays and objects",
    "not-a-json-value": "a value that JSON has no form for",
}
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class _RejectedError(Exception):  # never leaves this module; carries a reason and no text
    def __init__(self, reason: str) -> None:
        self.reason = reason


def loads(data: bytes) -> object:
    """The value of UTF-8 JSON text: dict, list, str, int, float (or jsonspelling.Number), bool or None.

    Raises EncodingError with reason `not-utf8`, `not-json`, `not-finite`, `duplicate-member`,
    `lone-surrogate` or `too-deep`.
    """
    value: object = None
    reason = ""
    try:
        text = str(data, "utf-8")
        value = _DECODER.decode(text)
        _check(value, escaped_surrogates=_SURROGATE_ESCAPE.search(text) is not None)
    except UnicodeDecodeError:
        reason = "not-utf8"
    except _RejectedError as refused:
        reason = refused.reason
    except RecursionError:
        reason = "too-deep"
    except ValueError:
        reason = "not-json"
    if reason:  # raised out here: a library's error holds the text, and must not become a context
        _refuse(reason)
    return value


def dumps(value: object, *, levels: int = DEPTH_LIMIT) -> str:
    """A value as compact JSON text, not ASCII-escaped: what `JSON.stringify` gives.

    `levels` of arrays and objects at most.
    Raises EncodingError with reason `not-finite`, `lone-surrogate`, `too-deep` or `not-a-json-value`.
    """
    parts: list[str] = []
    _write(value, parts, levels)
    return "".join(parts)


def string(text: str) -> str:
    """Text as a JSON string in quotes. Raises EncodingError, reason `lone-surrogate`."""
    if not is_text(text):
        _refuse("lone-surrogate")
    return encode_basestring(text)


def is_text(text: str) -> bool:
    """Whether the string is text, so that it has a UTF-8 form: no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _write(value: object, parts: list[str], depth: int) -> None:
    if isinstance(value, str):
        parts.append(string(value))
    elif value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, int | float):
        parts.append(_number(value))
    elif isinstance(value, list | tuple | Mapping):
        if depth == 0:
            _refuse("too-deep")
        if isinstance(value, Mapping):
            _write_object(value, parts, depth)
        else:
            _write_array(value, parts, depth)
    else:
        _refuse("not-a-json-value")


def _write_object(value: Mapping[object, object], parts: list[str], depth: int) -> None:
    parts.append("{")
    for index, (name, member) in enumerate(value.items()):
        if not isinstance(name, str):
            _refuse("not-a-json-value")
        parts.append(f"{',' if index else ''}{string(name)}:")
        _write(member, parts, depth - 1)
    parts.append("}")


def _write_array(value: list[object] | tuple[object, ...], parts: list[str], depth: int) -> None:
    parts.append("[")
    for index, item in enumerate(value):
        if index:
            parts.append(",")
        _write(item, parts, depth - 1)
    parts.append("]")


def _number(value: float) -> str:
    text = jsonspelling.written(value)
    if text is None:
        _refuse("not-finite" if isinstance(value, float) else "not-a-json-value")
    return text


def _check(value: object, *, escaped_surrogates: bool) -> None:
    level: list[object] = [value]
    for depth in range(DEPTH_LIMIT + 1):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                if escaped_surrogates and not all(map(is_text, item)):
                    raise _RejectedError("lone-surrogate")
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif escaped_surrogates and isinstance(item, str) and not is_text(item):
                raise _RejectedError("lone-surrogate")
            else:
                continue
            if depth == DEPTH_LIMIT and isinstance(item, dict | list):
                raise _RejectedError("too-deep")
        if not below:
            return
        level = below


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _RejectedError("duplicate-member")
    return members


def _not_finite(_: str) -> NoReturn:
    raise _RejectedError("not-finite")


def _refuse(reason: str) -> NoReturn:
    raise EncodingError(reason, _MESSAGES[reason])


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_constant=_not_finite,
    parse_float=jsonspelling.fraction,
    parse_int=jsonspelling.integer,
)
