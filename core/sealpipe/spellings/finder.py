"""Finds values in bytes, whatever they are written in: a quick look first, and then character by character."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Final

from sealpipe.spellings.needles import Needle, list_needles
from sealpipe.spellings.reading import OPEN, SPECIAL, Pattern, Reading, read
from sealpipe.spellings.sieve import MOST, Sieve

REACH: Final = 1024
"""Maximum bytes of one piece of a value as it is written."""
_BLOCK: Final = 512
"""Bytes that are cheaper to read than to look at in halves."""
_START: Final = 4
"""Bytes of the beginning of a needle that is looked up first."""
# All backslashes of a run are read from its first one on.
_SPECIAL: Final = Pattern(rb"(?<!\\)\\|[%b]" % re.escape(bytes(SPECIAL - {92})))
_WRAP: Final = Pattern(rb"(?:[\r\n]|\\{1,8}[rn]|%0[AaDd]|&#1[03];){1,8}[ \t]{0,256}")
_ANY: Final = b"\\%&"
"""Signs with which any character may begin; others only mean these:"""
_SOME: Final = {b'"': b'"', b"'": b"'", b" ": b"\r\n+", b"\n": b"\r\n", b"\r": b"\r"}

Span = tuple[int, int]
Readings = dict[int, tuple[Reading, ...]]
"""What can be read at places of some data."""


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
            known: Readings = {}
            for needle in possible:
                for begin in _compile_starts(needle.text[:1]).finditer(data, start, stop):
                    end, _ = match(data, begin.start(), needle, known)
                    if end != OPEN:
                        yield begin.start(), end

    def find_open(self, data: bytes) -> tuple[int, int]:
        """Return where the earliest possible value begins that may go on after the data, and how much of one is there.

        The latter in bytes of the value. Without such a value: the end of the data, and 0.
        """
        earliest, most, readings = len(data), 0, Readings()
        for at, needles in self._list_begun(data):
            for needle in needles:
                _, known = match(data, at, needle, readings)
                if known != OPEN:  # of others that begin alike, as much is there
                    earliest, most = min(earliest, at), max(most, known)
                    break
        return earliest, most

    def _list_begun(self, data: bytes) -> Iterator[tuple[int, Iterable[Needle]]]:
        """Yield places where needles may begin that are not over yet, as the first bytes tell, and which."""
        get = self._by_start.get
        done = max(0, len(data) - REACH)
        for end in (*(special.start() for special in _SPECIAL.compiled.finditer(data, done)), len(data)):
            for at in range(done, end - _START + 1):
                if needles := get(data[at : at + _START]):
                    yield at, needles
            begins = end < len(data) and data[end] in self._starts
            follow = _list_meanings(data, end) if begins or end > done else ()
            for at in range(max(done, end - _START + 1), end):
                for begun in {data[at:end] + sign for sign in follow}:
                    if needles := get(begun[:_START]):
                        yield at, needles
            if begins:
                for sign in follow:
                    yield end, get(sign, ()) if sign else get(b"", [])[:1]
            done = end + 1


def _list_meanings(data: bytes, at: int) -> Collection[bytes]:
    """Return how what is meant here may begin, line breaks left out, too; nothing where anything may be meant."""
    places = [at, *(wrap.end() for wrap in (_WRAP.match(data, at),) if wrap)]
    return {meaning[:1] for place in places for meaning, _ in read(data, place)}


def match(data: bytes | bytearray, at: int, needle: Needle, known_readings: Readings) -> Span:
    """Return where a needle ends that begins at `at`, at the latest; and how much of it there is where the data ends.

    OPEN if it does not begin there, or if more data would not change the former. What is read at a place of these data
    is kept in the last argument: reading it again and again would take seconds in a flood of quotes.
    """
    text, wraps = needle
    size, stop = len(text), len(data)
    if text.isalnum() and data.startswith(text, at):
        return at + size, OPEN
    best = known = OPEN
    waiting, seen = [(0, at)], {(0, at)}
    while waiting:
        done, place = waiting.pop()
        while done < size and place < stop and (byte := data[place]) == text[done] and byte not in SPECIAL:
            done, place = done + 1, place + 1
        if place - at > REACH:
            continue
        if done == size:
            best = max(best, place)
            continue
        if place == stop:
            known = max(known, done)
            continue
        if data[place] not in SPECIAL:
            continue
        if (readings := known_readings.get(place)) is None:
            readings = known_readings[place] = tuple(dict.fromkeys(read(data, place)))
        found = [(meaning, end) for meaning, end in readings if text.startswith(meaning, done)]
        if wraps and done and (wrap := _WRAP.match(data, place)):
            found += [(b"", wrap.end())]
        for meaning, end in found:
            state = done + len(meaning), end
            if end == OPEN:
                known = max(known, done)
            elif (meaning or done) and state not in seen:
                seen.add(state)
                waiting.append(state)
    return best, known


@cache
def _compile_starts(sign: bytes) -> re.Pattern[bytes]:
    # All backslashes of a run are read from its first one on.
    starts = _list_starts(sign).replace(b"\\", b"", sign != b"\\")
    return re.compile(rb"(?<!\\)\\|[%b]" % re.escape(starts))


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
