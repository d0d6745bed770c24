"""Finds values in a stream of bytes, in any of the usual encodings, and replaces them; all else passes byte for byte.

A value is searched as a whole and line by line: as it is; escaped for JSON, JSON in JSON, URLs, HTML, YAML, Python and
shells; in UTF-16; in hex; in base64 and base64url at each alignment, wrapped or not. What is longer than a piece is
searched piece by piece, so that a long value is found whichever part of it is printed, and little is held back. Where
finds overlap or touch, they are replaced together, once.
"""

from __future__ import annotations

import html
import json
import os
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from sealpipe.ci_commands import MIN_MASK_LENGTH, select_maskable_lines
from sealpipe.secret_scan import find_positions, list_base64_forms, merge_spans

MARK: Final = b"***"
"""What replaces a value that was found."""

_PIECE: Final = 64
"""Bytes of a piece; also where PEM and OpenSSL wrap base64."""
_WRAPPED: Final = 76
"""Characters after which `base64` and MIME wrap."""
_LINE: Final = 512
"""Bytes of output that are cheaper to look through than all patterns."""
_REST: Final = 16
"""Minimum bytes of the last piece: a shorter one might be common text."""
_HEAD: Final = 8
"""Bytes of a pattern that are looked up first."""
_SIGNS: Final = b"\0%\\&+~#$!@'\"=/-_"
"""Characters that are rare in most output: patterns with one of them are only looked for where it stands."""
_SHELL_SIGNS: Final = " \t!\"#$&'()*,;<>?[\\]^`{|}"
"""What bash's `printf %q` puts a backslash before."""
_TO_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_UNSEEN: Final = MIN_MASK_LENGTH - 1
"""Bytes of a possible value that may be shown early: so short a value is not redacted at all."""


def is_redactable(value: bytes) -> bool:
    """Return whether a value is long enough to be searched for: common text would vanish from the output otherwise."""
    return len(os.fsdecode(value).strip()) >= MIN_MASK_LENGTH


def list_patterns(values: Iterable[bytes]) -> frozenset[bytes]:
    """Return all that is searched for, of at least four bytes each."""
    lines, _ = select_maskable_lines(os.fsdecode(value) for value in values)
    # Line breaks around a value stay in the output: it keeps its lines.
    bare = dict.fromkeys(text for line in lines for text in (line.strip("\r\n"), line.strip()))
    pieces = (piece for text in bare for piece in _list_pieces(text))
    return frozenset(piece for piece in pieces if len(piece) >= MIN_MASK_LENGTH)


def _list_pieces(text: str) -> Iterator[bytes]:
    value = os.fsencode(text)
    ended = [b2a_base64(value + end, newline=False) for end in (b"", b"\n")]
    for form in (*list_base64_forms(value), *ended, *(each.rstrip(b"=") for each in ended)):
        for spelled in (form, form.translate(_TO_SAFE)):
            yield from _split(spelled, _PIECE)
            yield from _split(spelled, _WRAPPED)
    urls = [quote(value, safe=""), quote(value), quote_plus(value)]
    urls += [quote(url, safe="") for url in urls]
    wide = (text.encode(each, "surrogatepass") for each in ("utf-16-le", "utf-16-be"))
    for form in (value, *(os.fsencode(each) for each in _escape(text)), *map(str.encode, urls), *wide):
        yield from _split(form, _PIECE)
        yield from _split(_lower_escapes(form), _PIECE)
    yield from _split(value.hex().encode(), _PIECE)
    yield from _split(value.hex().upper().encode(), _PIECE)


def _escape(text: str) -> Iterator[str]:
    """Yield a text as JSON, HTML, YAML, Python and shells spell it."""
    for spelled in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield from (spelled, spelled.replace("/", "\\/"))
        for again in (spelled, spelled.replace("/", "\\/")):
            yield from (json.dumps(again)[1:-1], json.dumps(again, ensure_ascii=False)[1:-1])
    yield html.escape(text)
    for quoted in ("'\\''", "'\"'\"'", "''", "\\'"):
        yield text.replace("'", quoted)
    yield from (repr(text)[1:-1], repr(os.fsencode(text))[2:-1])
    for signs in ('\\"$`', '\\"$`!', _SHELL_SIGNS):
        yield "".join(f"\\{each}" if each in signs else each for each in text)


def _lower_escapes(url: bytes) -> bytes:
    head, *rest = url.split(b"%")
    return b"%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _split(form: bytes, width: int) -> Iterator[bytes]:
    """Yield a form, or its pieces: as wide as given, a rest that is not too common, and its last bytes."""
    if len(form) <= width:
        yield form
        return
    for start in range(0, len(form), width):
        if len(form) - start >= _REST:
            yield form[start : start + width]
    yield form[-width:]


class Redactor:
    """Redacts one stream: patterns of at least four bytes. Holds back only what may be the beginning of one."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self._longest = 0
        self._by_sign: dict[bytes, list[bytes]] = {}
        self._beginnings: set[bytes] = set()
        self._by_head: dict[bytes, list[bytes]] = {}
        self._heads: set[bytes] = set()
        for pattern in patterns:
            self._longest = max(self._longest, len(pattern))
            sign = next((bytes([byte]) for byte in _SIGNS if byte in pattern), b"")
            self._by_sign.setdefault(sign, []).append(pattern)
            self._beginnings.add(pattern[:MIN_MASK_LENGTH])
            self._by_head.setdefault(pattern[:_HEAD], []).append(pattern)
            self._heads.update(pattern[:size] for size in range(1, min(_HEAD, len(pattern))))
        self._held = b""
        self._covered = 0
        """How many of the first held bytes belong to a value that was found."""
        self._shown = 0
        """How many of the first held bytes were shown early."""
        self._is_marked = False
        """Whether the last byte that is no longer held belongs to a value."""

    @property
    def held(self) -> int:
        """How many bytes are held back."""
        return len(self._held)

    def feed(self, data: bytes) -> bytes:
        """Return what can be shown after these bytes."""
        data = self._held + data
        return self._release(data, self._find_open(data))

    def settle(self) -> bytes:
        """Return what may be shown although more may follow, while nothing comes: up to three bytes, as in a prompt."""
        if self._covered or len(self._held) > _UNSEEN:
            return b""
        shown, self._shown = self._held[self._shown :], len(self._held)
        return shown

    def finish(self) -> bytes:
        """Return what is left at the end of the stream."""
        return self._release(self._held, len(self._held))

    def _find_open(self, data: bytes) -> int:
        """Return where the earliest possible value begins that the data does not contain to its end."""
        for size in range(min(self._longest - 1, len(data)), 0, -1):
            tail = data[-size:]
            if size < _HEAD:
                if tail in self._heads:
                    return len(data) - size
            elif any(len(each) > size and each.startswith(tail) for each in self._by_head.get(tail[:_HEAD], ())):
                return len(data) - size
        return len(data)

    def _release(self, data: bytes, end: int) -> bytes:
        """Release the data up to `end`, and hold the rest."""
        if not end:
            self._held = data
            return b""
        shown: list[bytes] = []
        place = 0
        for start, stop in self._find_spans(data):
            if start >= end:
                break
            if start > place:
                shown.append(data[max(place, self._shown) : start])
            if start > place or not (place or self._is_marked):
                shown.append(MARK)
            place = stop
        if place < end:
            shown.append(data[max(place, self._shown) : end])
        self._is_marked = place >= end
        self._held, self._covered = data[end:], max(0, place - end)
        self._shown = max(0, self._shown - end)
        return b"".join(shown)

    def _list_possible(self, data: bytes) -> Iterator[bytes]:
        """Yield the patterns that the data may contain, by a quick look at it."""
        if len(data) <= _LINE:
            ends = range(MIN_MASK_LENGTH, len(data) + 1)
            if self._beginnings.isdisjoint(data[end - MIN_MASK_LENGTH : end] for end in ends):
                return
        for sign, patterns in self._by_sign.items():
            if sign in data:
                yield from patterns

    def _find_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where values are: sorted, disjoint and not touching."""
        spans = [(0, self._covered)] if self._covered else []
        for pattern in self._list_possible(data):
            spans += ((start, start + len(pattern)) for start in find_positions(data, pattern))
        return merge_spans(spans)
