"""A quick look at data: which values it may contain.

All else is passed on without being read character by character.

Each needle is known by a fragment: of its text as it is, and of what is left of it once all escapes
are resolved and all signs are taken out that programs add or drop. The data is looked at in the
same two ways, in words of eight or four bytes: a fragment of 15 or 7 bytes contains a whole one
wherever it lies, so one set of words is enough for any number of needles. Capitals count as small
letters: that costs nothing, and so one look serves also who searches for both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final, Literal

from sealpipe.spellings.needles import Needle
from sealpipe.spellings.reading import ENTITY, LETTERS, SPECIAL, Pattern, decode_entity

MOST: Final = 1024 * 1024
"""Bytes that are looked at together, so that memory never holds large data twice."""
_ESCAPES: Final = {
    b"\\": Pattern(rb"\\\\{0,15}(?:%b|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|[abefnrtv0])" % LETTERS),
    b"%": Pattern(rb"%([0-9a-fA-F]{2})"),
    b"&": Pattern(rb"&(?:%b)" % ENTITY),
}
_BEGUN: Final = Pattern(
    rb"(?:\\[uUx0-7]?\{?[0-9a-fA-F]{0,14}|%[0-9a-fA-F]?|&#?[0-9A-Za-z]{0,31})\Z"
)
"""Matches the end of a value that text after it could make a whole escape."""
_OCTAL: Final = 6
"""The group of a byte in octal, after all that are in hex."""
_ROUNDS: Final = 5
_KEPT: Final = bytes(range(0x21, 0x7F)).translate(None, bytes(SPECIAL))
_DROPPED: Final = bytes(range(256)).translate(None, _KEPT)
_TO_SMALL: Final = bytes(range(256)).lower()
_WORDS: Final[Mapping[int, Literal["Q", "I"]]] = {8: "Q", 4: "I"}
"""Bytes of a word, and how a view has them."""
_SWALLOWED: Final = 5
"""Bytes at the beginning of a value that text before it could make part of an escape, such as a
backslash.
"""
_SHORTEST: Final = 4
_SEAM: Final = b"\xff\xfe\xff"

Fragment = tuple[bytes, Needle]


def _resolve_escapes(data: bytes) -> bytes:
    for _ in range(_ROUNDS):
        before = data
        for sign, escape in _ESCAPES.items():
            if sign in data:
                data = escape.compiled.sub(_decode_entity if sign == b"&" else _decode, data)
        if data == before:
            break
    return data


def _decode(found: re.Match[bytes]) -> bytes:
    last = found.lastindex or 0
    code = int(found[last], 8 if last == _OCTAL else 16) if last else 0
    return bytes([code]) if 0 < code < 128 else b""


def _decode_entity(found: re.Match[bytes]) -> bytes:
    meanings = decode_entity(*found.groups())
    return next(
        (each if len(each) == 1 else b"" for each in meanings), found[0] if found[3] else b""
    )


def _list_plain_parts(text: bytes) -> list[bytes]:
    """Return a text without what looks like an escape in it.

    That may be resolved at one depth and not at another.
    """
    for sign, escape in _ESCAPES.items():
        if sign in text:
            text = escape.compiled.sub(_SEAM, text)
    text = _BEGUN.compiled.sub(b"", text)
    return [part.translate(None, _DROPPED) for part in text.split(_SEAM)]


class Sieve:
    """Tells which of the needles data may contain: all that it contains, and few others."""

    def __init__(self) -> None:
        self._index: dict[int, dict[int, list[Fragment]]] = {}
        self._words: dict[int, set[int]] = {}
        self._short: list[Fragment] = []
        self._unsieved: list[Needle] = []

    def add(self, needle: Needle) -> None:
        """Look for a needle, too."""
        left = max(_list_plain_parts(needle.text), key=len)
        if len(left) < _SHORTEST:
            self._unsieved.append(needle)
        for text in {needle.text, left}:
            fragment, size = _cut(text.lower())
            if size:
                for at in range(size):
                    word = int.from_bytes(fragment[at : at + size], sys.byteorder)
                    self._index.setdefault(size, {}).setdefault(word, []).append((fragment, needle))
                    self._words.setdefault(size, set()).add(word)
            elif len(fragment) >= _SHORTEST:
                self._short.append((fragment, needle))

    def may_contain(self, data: bytes | bytearray) -> bool:
        """Return whether the data may contain any of the needles; always of large data."""
        if len(data) > MOST:
            return True
        if self._short or self._unsieved or b"\\" in data or b"%" in data or b"&" in data:
            return bool(self.find_possible(bytes(data)))
        small = data.translate(_TO_SMALL, _DROPPED)
        for size, words in self._words.items():
            if not words.isdisjoint(memoryview(small)[: len(small) & -size].cast(_WORDS[size])):
                return bool(self.find_possible(bytes(data)))
        return False

    def find_possible(self, data: bytes) -> set[Needle]:
        """Return the needles that the data may contain."""
        is_spelled = b"\\" in data or b"%" in data or b"&" in data
        resolved = _resolve_escapes(data) if is_spelled else data
        found = self._look(resolved.translate(_TO_SMALL, _DROPPED))
        if is_spelled or self._unsieved:
            # Text before a value may have become part of an escape with its beginning; or the value
            # has no letters.
            found.update(self._look(data.lower()))
            found.update(self._unsieved)
        return found

    def _look(self, data: bytes) -> set[Needle]:
        found = {needle for fragment, needle in self._short if fragment in data}
        for size, words in self._words.items():
            view = memoryview(data)[: len(data) & -size].cast(_WORDS[size])
            if not words.isdisjoint(view):
                fragments = {
                    each for word in words.intersection(view) for each in self._index[size][word]
                }
                found.update(needle for fragment, needle in fragments if fragment in data)
        return found


def _cut(text: bytes) -> tuple[bytes, int]:
    """Return a fragment of a text, and the bytes of the words that it is found by.

    0 if it is too short for that.
    """
    for size in _WORDS:
        length = 2 * size - 1
        if len(text) >= length + (_SWALLOWED if size > 4 else 0):
            start = min(_SWALLOWED, len(text) - length)
            return text[start : start + length], size
    return text, 0
