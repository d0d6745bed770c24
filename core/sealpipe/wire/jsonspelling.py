"""How JSON text spells numbers and the inside of strings.

Numbers are spelled as ECMAScript spells them, or as they were read. A string is written slice by slice, so that a large
one is never held a second time; what comes out is what `JSON.stringify` gives: quotes, backslashes and control
characters escaped, the rest as it is. The slices are searched with what runs at the speed of memory (bytes.replace, one
`in` for each rare byte); only a slice with a rare control character takes the slow way.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator
from json.encoder import encode_basestring

from sealpipe.errors import FieldError
from sealpipe.secret import Secret

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


SLICE = 64 * 1024
_USUAL = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))
_RARE = bytes(set(range(0x20)) - set(b"\n\r\t"))


def escaped(value: str | Secret) -> Iterator[bytes]:
    """The value's JSON form without its quotes, as UTF-8 in pieces.

    Raises FieldError with reason `lone-surrogate` or, for a Secret of bytes, `not-utf8`.
    """
    slices = _slices_of_text(value) if isinstance(value, str) else _slices_of_bytes(utf8(value))
    return map(_escaped, slices)


def utf8(value: Secret) -> bytes:
    """The bytes of a Secret; those it was made from are not checked. Raises FieldError, `lone-surrogate`."""
    try:
        return value.reveal_bytes()
    except UnicodeEncodeError:  # it holds the value: raised outside, it does not become a context
        pass
    raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")


def _slices_of_text(value: str) -> Iterator[bytes]:
    for start in range(0, len(value), SLICE):
        encoded = _encoded(value[start : start + SLICE])
        if encoded is None:
            raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")
        yield encoded


def _slices_of_bytes(value: bytes) -> Iterator[bytes]:
    # A slice may cut a character in two: the decoder carries the first half over. Only it needs to
    # know, since no byte of a character beyond ASCII is ever escaped.
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(value), SLICE):
        piece = value[start : start + SLICE]
        if not _is_utf8(decoder, piece, final=start + SLICE >= len(value)):
            raise FieldError("not-utf8", "the value is not UTF-8 text", remedy="say how to decode it")
        yield piece


def _is_utf8(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool) -> bool:
    if piece.isascii() and not decoder.getstate()[0]:
        return True
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True


def _encoded(text: str) -> bytes | None:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None


def _escaped(piece: bytes) -> bytes:
    if any(map(piece.__contains__, _RARE)):
        # As Latin-1 every byte is one character, and those that are escaped are all ASCII.
        return encode_basestring(piece.decode("latin-1"))[1:-1].encode("latin-1")
    for plain, escape in _USUAL:
        piece = piece.replace(plain, escape)
    return piece
