"""Reads one character of a text in each way that it can be meant.

As it is, or as an escape of any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeVar


class Pattern:
    """A regular expression that is compiled when it is first used.

    Most commands meet nothing that needs one.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """The expression itself."""
        return re.compile(self._text)

    def match(self, data: bytes | bytearray, at: int) -> re.Match[bytes] | None:
        """Match at a place."""
        return self.compiled.match(data, at)

    def fullmatch(self, data: bytes | bytearray, at: int) -> re.Match[bytes] | None:
        """Match from a place to the end."""
        return self.compiled.fullmatch(data, at)


@dataclass(frozen=True, slots=True)
class Text:
    """Data that is read.

    What was read of it once is kept: reading it again would take seconds in a flood of quotes.
    """

    data: bytes | bytearray
    known: dict[tuple[object, int, int], tuple[Any, ...]] = field(default_factory=dict)


Reading = tuple[bytes, int]
"""What is meant, and where it ends.

The end is OPEN where the data ends too early to tell; then what is meant is a beginning, which may
be empty."""

Escape = Callable[[Text, int, int], Iterator[Reading]]
"""Yields what is meant by an escape, from the place after its first sign and to a depth."""

T = TypeVar("T")
OPEN: Final = -1
_DEPTH: Final = 3
_HEX: Final = rb"[0-9a-fA-F]"
_END: Final = rb"(?:;|%(?:25){0,2}3[bB])"
ENTITY: Final = (
    rb"(?:#|%(?:25){0,2}23)(?:0{0,8}([0-9]{1,7})|[xX]0{0,8}([0-9a-fA-F]{1,6}))"
    + _END
    + rb"|([A-Za-z][A-Za-z0-9]{1,31})"
    + _END
)
"""Matches what follows `&`: a number, a number in hex, or a name."""
_LEFT: Final = rb"(?:\{|%(?:25){0,2}7[bB])"
_RIGHT: Final = rb"(?:\}|%(?:25){0,2}7[dD])"
_WIDE: Final = _LEFT + rb"0{0,8}([0-9a-fA-F]{1,6})" + _RIGHT
LETTERS: Final = rb"u%b|u([0-9a-fA-F]{4})|x%b|U([0-9a-fA-F]{8})" % (_WIDE, _WIDE)
"""Matches what follows a backslash for a character, in hex."""
_LETTERS: Final = Pattern(LETTERS)
_SLASHES: Final = rb"(?:\\|%%(?:25){0,2}5[cC])"
_LOW: Final = Pattern((_SLASHES + rb"{1,16}u([dD][c-fC-F]%b{2})") % _HEX)
_LOW_BEGUN: Final = (
    rb"(?:" + _SLASHES + rb"{1,16}(?:u%b{0,3})?|" + _SLASHES + rb"{0,15}%%(?:2|25){0,2}5?)"
)
_BYTE: Final = Pattern(rb"x(%b{2})|([0-3][0-7]{2})" % _HEX)
_BRACE_BEGUN: Final = rb"(?:%(?:2|25){0,2}7?)?"
_WIDE_BEGUN: Final = rb"(?:%b%b{0,14})?%b" % (_LEFT, _HEX, _BRACE_BEGUN)
_LETTERS_BEGUN: Final = Pattern(
    rb"(?:u(?:%b|%b{0,3})|u[dD][89abAB]%b{2}%b?|x(?:%b|%b?)|U%b{0,7}|[0-3][0-7]?)?"
    % (_WIDE_BEGUN, _HEX, _HEX, _LOW_BEGUN % _HEX, _WIDE_BEGUN, _HEX, _HEX)
)
_CONTROLS: Final = {
    letter.encode(): meaning.encode()
    for letter, meaning in zip("abefnrtv0", "\a\b\x1b\f\n\r\t\v\0", strict=True)
}
_PERCENT: Final = Pattern(rb"%b{2}" % _HEX)
_ENTITY: Final = Pattern(ENTITY)
_ENTITY_BEGUN: Final = Pattern(
    rb"(?:(?:#|%[0-9]{1,6})(?:[xX]?[0-9a-fA-F]{0,15})?|[A-Za-z][A-Za-z0-9]{0,31})?(?:%[0-9]{0,5})?"
)
_BACKSLASH: Final = Pattern(rb"\\|%(?:25){0,2}5[cC]")
_BACKSLASHES: Final = Pattern(rb"(?:\\|%(?:25){0,2}5[cC]){0,1024}")
_MOST_BACKSLASHES: Final = 16
"""How many may stand for one; any number may stand before another sign."""
_BREAK: Final = Pattern(rb"\r?\n[ \t]{0,256}")
_BREAK_BEGUN: Final = Pattern(rb"\r?(?:\n[ \t]{0,256})?")
_INDENT: Final = Pattern(rb"[ \t]{0,256}")


def read(text: Text, at: int, depth: int = _DEPTH) -> tuple[Reading, ...]:
    """Return what the text at this place can mean.

    The byte itself first, then what escapes that begin with it mean.
    """
    sign = bytes(text.data[at : at + 1])
    return (
        ((sign, at + 1), *_go_on(text, sign, at + 1, depth))
        if sign in _ESCAPES
        else ((sign, at + 1),)
    )


def _remember(
    find: Callable[[Text, bytes, int, int], Iterable[T]],
) -> Callable[[Text, bytes, int, int], tuple[T, ...]]:
    """Make a function keep what it finds of a text, each only once."""

    def recall(text: Text, signs: bytes, at: int, depth: int) -> tuple[T, ...]:
        key = (find, signs), at, depth
        if (found := text.known.get(key)) is None:
            found = text.known[key] = tuple(dict.fromkeys(find(text, signs, at, depth)))
        return found

    return recall


@_remember
def _go_on(text: Text, sign: bytes, at: int, depth: int) -> Iterator[Reading]:
    """Yield the meanings of an escape whose own sign was spelled and ends here."""
    for meaning, end in dict.fromkeys(_ESCAPES[sign](text, at, depth)):
        yield meaning, end
        if depth and end != OPEN and meaning in _ESCAPES and (meaning, sign) != (b"\\", b"\\"):
            yield from _go_on(text, meaning, end, depth - 1)


def _after_backslash(text: Text, at: int, depth: int) -> Iterator[Reading]:
    data = text.data
    run = _match(_BACKSLASHES, data, at)
    for again in islice(_BACKSLASH.compiled.finditer(data, at, run), _MOST_BACKSLASHES):
        yield b"\\", again.end()
    if _BACKSLASH.match(data, run):
        return  # more than can be a part of one piece
    if code := _LETTERS.match(data, run):
        yield from _to_characters(data, code)
    elif byte := _BYTE.match(data, run):
        value = int(byte[1], 16) if byte[1] else int(byte[2], 8)
        yield bytes([value]), byte.end()
        if value > 127 and byte[1]:
            yield chr(value).encode(), byte.end()
    elif control := _CONTROLS.get(bytes(data[run : run + 1])):
        yield control, run + 1
    elif line_break := _BREAK.match(data, run):
        yield b"", line_break.end()
    elif depth and run < len(data):
        yield from (
            (sign, end) for sign, end in read(text, run, depth - 1) if is_sign(sign) or end == OPEN
        )
    if _LETTERS_BEGUN.fullmatch(data, run) or _BREAK_BEGUN.fullmatch(data, run):
        yield b"", OPEN


def _to_characters(data: bytes | bytearray, found: re.Match[bytes]) -> Iterator[Reading]:
    code, end = int(found[found.lastindex or 0], 16), found.end()
    if 0xD800 <= code < 0xDC00 and (low := _LOW.match(data, end)):
        code, end = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00, low.end()
    yield from ((meaning, end) for meaning in _encode(code))


def _encode(code: int) -> list[bytes]:
    return [chr(code).encode()] if code < 0xD800 or 0xDFFF < code < 0x110000 else []


def is_sign(meaning: bytes) -> bool:
    """Return whether it is a byte that programs put a backslash before.

    No letter or digit of ASCII.
    """
    return len(meaning) == 1 and meaning >= b" " and not meaning.isalnum()


def _after_percent(text: Text, at: int, _depth: int) -> Iterator[Reading]:
    data = text.data
    if digits := _PERCENT.match(data, at):
        yield bytes([int(digits[0], 16)]), digits.end()
    elif len(data) - at < 2 and all(sign in b"0123456789abcdefABCDEF" for sign in data[at:]):
        yield b"", OPEN


def _after_ampersand(text: Text, at: int, _depth: int) -> Iterator[Reading]:
    data = text.data
    if found := _ENTITY.match(data, at):
        yield from (
            (meaning, found.end()) for meaning in decode_entity(found[1], found[2], found[3])
        )
    elif _ENTITY_BEGUN.fullmatch(data, at):
        yield b"", OPEN


def decode_entity(decimal: bytes | None, digits: bytes | None, name: bytes | None) -> list[bytes]:
    """Return what an HTML entity means, in UTF-8; nothing if there is no such entity."""
    if name is not None:
        from html.entities import html5  # 2,231 names, which few commands meet

        known = html5.get(name.decode() + ";")
        return [] if known is None else [known.encode()]
    return _encode(int(decimal or digits or b"", 16 if decimal is None else 10))


def _after_quote(sign: bytes, *others: bytes) -> Escape:
    """Read a quote that is doubled, or closed, written and opened again."""

    def go_on(text: Text, at: int, depth: int) -> Iterator[Reading]:
        yield from (
            (sign, end)
            for rest in (sign, *others)
            for end in _read_signs(text, rest, at, depth - 1)
        )

    return go_on


@_remember
def _read_signs(text: Text, signs: bytes, at: int, depth: int) -> Iterator[int]:
    """Yield where signs end that may be read here, each in any spelling."""
    if not signs or at == len(text.data):
        yield OPEN if signs else at
    elif depth >= 0:
        for meaning, end in read(text, at, depth):
            if end == OPEN and signs.startswith(meaning):
                yield OPEN
            elif meaning == signs[:1]:
                yield from _read_signs(text, signs[1:], end, depth)


def _after_return(text: Text, at: int, depth: int) -> Iterator[Reading]:
    for end in _read_signs(text, b"\n", at, depth - 1):
        yield b"\n", end
        if end == OPEN:  # a line break may mean a space
            yield b" ", OPEN


def _after_break(text: Text, at: int, _depth: int) -> Iterator[Reading]:
    longest = _match(_INDENT, text.data, at)
    yield from ((b" ", end) for end in range(at, longest + 1))
    if longest == len(text.data):
        yield b" ", OPEN


def _after_plus(_text: Text, at: int, _depth: int) -> Iterator[Reading]:
    yield b" ", at


def _match(pattern: Pattern, data: bytes | bytearray, at: int) -> int:
    """Return the end of a pattern that matches everywhere."""
    found = pattern.match(data, at)
    return at if found is None else found.end()


_ESCAPES: Final[dict[bytes, Escape]] = {
    b"\\": _after_backslash,
    b"%": _after_percent,
    b"&": _after_ampersand,
    b'"': _after_quote(b'"'),
    b"'": _after_quote(b"'", b"\\''", b"\"'\"'"),
    b"\r": _after_return,
    b"\n": _after_break,
    b"+": _after_plus,
}
SPECIAL: Final = frozenset(b"".join(_ESCAPES))
"""Bytes that can mean something else than themselves, with what follows them."""
