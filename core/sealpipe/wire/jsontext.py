"""JSON text, strict both ways, as a browser writes it.

Python's json accepts NaN, repeated names and lone surrogates, and raises RecursionError; its errors
contain the whole text. A text that loads here can be written again, byte for byte if it is compact:
the members' order and the spelling of numbers are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import NoReturn

from sealpipe.errors import EncodingError

DEPTH_LIMIT = 100
"""Levels of arrays and objects, including the outermost.

Fixed, because Python's own limit differs by version.
"""

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


class _RejectedError(Exception):  # only used inside this module; has a reason and no text
    def __init__(self, reason: str) -> None:
        self.reason = reason


INTEGER_BITS = 4096
"""Bits of the longest integer that is written; a longer one that is read becomes a Number.

Python has a limit, too.
"""


class Number(float):
    """A number with its spelling, where Python would write it differently (`1.0`, `1e3`, `-0`)."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


def integer(text: str) -> int | Number:
    """The value of an integer literal."""
    # Python refuses to convert very long ones.
    if len(text) > INTEGER_BITS // 4 or text == "-0":
        return Number(text)
    return int(text)


def fraction(text: str) -> float:
    """The value of a literal with a fraction or an exponent."""
    value = float(text)
    return value if math.isfinite(value) and ecmascript(value) == text else Number(text)


def written(value: float) -> str | None:
    """The literal of a number; None for NaN, infinities and integers beyond INTEGER_BITS."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, int):
        return format(int(value), "d") if value.bit_length() <= INTEGER_BITS else None
    return ecmascript(value) if math.isfinite(value) else None


def ecmascript(value: float) -> str:
    """A finite number as `JSON.stringify` spells it (ECMA-262, Number::toString)."""
    # Both use the shortest digits. repr switches to an exponent at 1e16 and 1e-5 rather than 1e21
    # and 1e-7, and spells it differently.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    text = digits.rstrip("0")
    # the position of the decimal point, counted from the first digit
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))
    if not text:
        return "0"
    if len(text) <= point <= 21:
        text += "0" * (point - len(text))
    elif 0 < point <= 21:
        text = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        text = f"{text[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if value < 0 else text


def loads(data: bytes) -> object:
    """The value of UTF-8 JSON text: dict, list, str, int, float (or Number), bool or None.

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
    # raised here: the library's error contains the text, and must not become our error's context
    if reason:
        _refuse(reason)
    return value


def dumps(value: object, *, levels: int = DEPTH_LIMIT) -> str:
    """A value as compact JSON text, not ASCII-escaped, as `JSON.stringify` writes it.

    `levels` is the maximum depth of arrays and objects.
    Raises EncodingError with reason `not-finite`, `lone-surrogate`, `too-deep` or
    `not-a-json-value`.
    """
    parts: list[str] = []
    _write(value, parts, levels)
    return "".join(parts)


def finite(value: object) -> object:
    """A value that was read, for `json.dumps`.

    A number beyond all floats (`1e999`) is its text, as it is no JSON.
    """
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return value.text if isinstance(value, Number) and not math.isfinite(value) else value


def string(text: str) -> str:
    """Text as a JSON string in quotes. Raises EncodingError with reason `lone-surrogate`."""
    if not is_text(text):
        _refuse("lone-surrogate")
    return encode_basestring(text)


def is_text(text: str) -> bool:
    """Whether the string has a UTF-8 form: it has no lone surrogates."""
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
    text = written(value)
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
    parse_float=fraction,
    parse_int=integer,
)
