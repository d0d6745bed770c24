"""Finds values in bytes, whatever they are written in.

A quick look first, and then character by character.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Final

from sealpipe.spellings.needles import Needle, list_needles
from sealpipe.spellings.reading import OPEN, SPECIAL, Pattern, Text, read
from sealpipe.spellings.sieve import MOST, Sieve

REACH: Final = 1024
"""Maximum bytes of one piece of a value as it is written."""
_BLOCK: Final = 512
"""Bytes that are cheaper to read than to look at in halves."""
_START: Final = 4
"""Bytes of the beginning of a needle that is looked up first."""
_BACKSLASH: Final = rb"(?:\\|%(?:25){0,2}5[cC])"
_FIRST_BACKSLASH: Final = rb"(?<!\\)(?<!%5[cC])(?<!%255[cC])(?<!%25255[cC])" + _BACKSLASH
"""Matches where a run of backslashes begins: all of them are read from there on."""
_NO_BACKSLASH: Final = rb"(?!" + _BACKSLASH + rb")["
_SPECIAL: Final = Pattern(
    _FIRST_BACKSLASH + rb"|" + _NO_BACKSLASH + re.escape(bytes(SPECIAL)) + rb"]"
)
_WRAP: Final = Pattern(rb"(?:(?:[\r\n]|\\{1,8}[rn]|%0[AaDd]|&#1[03];){1,8}[ \t]{0,256}){1,2}")
_ANY: Final = b"\\%&"
"""Signs with which any character may begin; others only mean these:"""
_SOME: Final = {b'"': b'"', b"'": b"'", b" ": b"\r\n+", b"\n": b"\r\n", b"\r": b"\r"}

Span = tuple[int, int]


class Finder:
    """Finds values in bytes, and what else is added."""

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self._sieve = Sieve()
        self.may_hold: Final = self._sieve.may_contain
        """A quick look: whether data may contain a value, in whatever letters."""
        self._by_start: dict[bytes, list[Needle]] = {}
        self._starts: set[int] = set()
        self.add(list_needles(values))

    def add(self, needles: Iterable[Needle]) -> None:
        """Search for these, too."""
        for needle in needles:
            for size in range(_START + 1):
                self._by_start.setdefault(needle.text[:size], []).append(needle)
            self._starts.update(_list_starts(needle.text[:1]))
            self._sieve.add(needle)

    def find(self, data: bytes | bytearray) -> list[Span]:
        """Return where values are: sorted, disjoint and not touching."""
        return merge_spans(list(self.find_each(data)))

    def holds(self, data: bytes | bytearray) -> bool:
        """Return whether there is a value in the data."""
        return self.may_hold(data) and next(self.find_each(data), None) is not None

    def find_each(self, data: bytes | bytearray) -> Iterator[Span]:
        """Yield where each value is, or a piece of it."""
        waiting = [(start, min(start + MOST, len(data))) for start in range(0, len(data), MOST)]
        while waiting:
            start, stop = waiting.pop()
            possible = self._sieve.find_possible(bytes(data[start : stop + REACH]))
            if possible and stop - start > _BLOCK:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
                continue
            text = Text(data)
            for needle in possible:
                for begin in _compile_starts(needle.text[:1]).finditer(data, start, stop):
                    end, _ = match(text, begin.start(), needle)
                    if end != OPEN:
                        yield begin.start(), end

    def find_open(self, data: bytes) -> tuple[int, int]:
        """Return where the earliest match begins that may go on after the data, and its length.

        The latter in bytes of the value, of which more than four count as four. Without such a
        value: the end of the data, and 0.
        """
        earliest, most, text = len(data), 0, Text(data)
        for at, needles in self._list_begun(text):
            for needle in needles:
                _, known = match(text, at, needle)
                if known != OPEN:  # of others that begin alike, as much is there
                    earliest, most = min(earliest, at), max(most, min(known, _START))
                    break
            if most == _START:
                break  # in a flood, all that follows begins alike, too
        return earliest, most

    def _list_begun(self, text: Text) -> Iterator[tuple[int, Iterable[Needle]]]:
        """Yield the places where needles may have begun that are not over, and which."""
        get, data = self._by_start.get, bytes(text.data)
        done = max(0, len(data) - REACH)
        for end in (
            *(special.start() for special in _SPECIAL.compiled.finditer(data, done)),
            len(data),
        ):
            for at in range(done, end - _START + 1):
                if needles := get(data[at : at + _START]):
                    yield at, needles
            begins = end < len(data) and data[end] in self._starts
            follow = _list_meanings(text, end) if begins or end > done else ()
            for at in range(max(done, end - _START + 1), end):
                for begun in {data[at:end] + sign for sign in follow}:
                    if needles := get(begun[:_START]):
                        yield at, needles
            if begins:
                for sign in follow:
                    yield end, get(sign, ()) if sign else get(b"", [])[:1]
            done = end + 1


def _list_meanings(text: Text, at: int) -> Collection[bytes]:
    """Return how what is meant here may begin, line breaks left out, too.

    Nothing where anything may be meant.
    """
    places = [at, *(wrap.end() for wrap in (_WRAP.match(text.data, at),) if wrap)]
    return {meaning[:1] for place in places for meaning, _ in read(text, place)}


def match(text: Text, at: int, needle: Needle) -> Span:
    """Return where a needle ends that begins at `at`, at the latest.

    How much of it there is where the data ends.

    OPEN if it does not begin there, or if more data would not change the former.
    """
    value = needle.text
    if value.isalnum() and text.data.startswith(value, at):
        return at + len(value), OPEN
    first, last, known = _follow(text, needle, 0, at)
    return (min(last, at + REACH) if first != OPEN and first <= at + REACH else OPEN), known


def _follow(
    text: Text, needle: Needle, done: int, at: int, *, goes_on: bool = True
) -> tuple[int, int, int]:
    """Return where a needle ends first and last of which so much stood before a place.

    How much, if the data ends.

    What was found from a place is kept: in a flood of quotes, all places lead to the same ones.
    With `goes_on`, what stands there may mean nothing, such as a line break.
    """
    key = needle, done << 1 | goes_on, at
    if kept := text.known.get(key):
        return kept
    data, (value, wraps), place = text.data, needle, at
    size, stop, count = len(value), len(data), done
    while (
        count < size
        and place < stop
        and (byte := data[place]) == value[count]
        and byte not in SPECIAL
    ):
        count, place = count + 1, place + 1
    first = last = known = OPEN
    if count == size:
        first = last = place
    elif place == stop:
        known = count
    elif data[place] in SPECIAL:
        found = [
            (meaning, end) for meaning, end in read(text, place) if value.startswith(meaning, count)
        ]
        if wraps and (wrap := _WRAP.match(data, place)):
            found.append((b"", wrap.end()))
        goes_on = goes_on or count > done
        for meaning, end in found:
            if end == OPEN:
                known = max(known, count)
            elif meaning or (count and goes_on):
                begun, ended, begins = _follow(
                    text, needle, count + len(meaning), end, goes_on=bool(meaning)
                )
                first = begun if first == OPEN else min(first, begun) if begun != OPEN else first
                last, known = max(last, ended), max(known, begins)
    text.known[key] = first, last, known
    return first, last, known


@cache
def _compile_starts(sign: bytes) -> re.Pattern[bytes]:
    starts = re.escape(_list_starts(sign)) + b"]"
    return re.compile(
        b"[" + starts if sign in (b"\\", b"%") else _FIRST_BACKSLASH + b"|" + _NO_BACKSLASH + starts
    )


def _list_starts(sign: bytes) -> bytes:
    """Return the bytes with which a spelling of a sign may begin."""
    return sign + _ANY + _SOME.get(sign, b"")


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return spans in order; those that overlap or touch as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def replace_spans(data: bytes, spans: Iterable[Span], mark: bytes) -> bytes:
    """Return the data with a mark for each span; they are sorted and disjoint."""
    parts, done = [], 0
    for start, end in spans:
        parts += [data[done:start], mark]
        done = end
    return b"".join([*parts, data[done:]])
