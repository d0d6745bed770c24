"""Numbers of JSON text: spelled as ECMAScript spells them, or as they were read."""

from __future__ import annotations

import math

INTEGER_BITS = 4096
"""Bits of the longest integer written; a longer one that is read stays a Number. Python has a limit too."""


class Number(float):
    """A number whose spelling Python would not give back (`1.0`, `1e3`, `-0`), with that spelling."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


def integer(text: str) -> int | Number:
    """The number of an integer literal."""
    # Python gives up on very long ones, with an error of its own.
    if len(text) > INTEGER_BITS // 4 or text == "-0":
        return Number(text)
    return int(text)


def fraction(text: str) -> float:
    """The number of a literal with a fraction or an exponent."""
    value = float(text)
    return value if math.isfinite(value) and ecmascript(value) == text else Number(text)


def written(value: float) -> str | None:
    """The literal of a number; None where JSON has none: NaN, infinities, integers beyond INTEGER_BITS."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, int):
        return format(int(value), "d") if value.bit_length() <= INTEGER_BITS else None
    return ecmascript(value) if math.isfinite(value) else None


def ecmascript(value: float) -> str:
    """A finite number as `JSON.stringify` spells it (ECMA-262, Number::toString)."""
    # It takes the same shortest digits as repr, and differs in where it turns to an exponent
    # (1e21 and 1e-7 rather than 1e16 and 1e-5) and in how it spells one.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    text = digits.rstrip("0")
    # where the decimal point stands, counted from the first digit
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
