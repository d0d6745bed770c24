"""Replaces values in a stream of bytes, however it is cut into pieces.

All else passes byte for byte.

What is searched for, and how a value may be written, is said in `sealpipe.spellings`. Where finds
overlap or touch, they are replaced together, once.
"""

from __future__ import annotations

from typing import Final

from sealpipe.spellings import Finder, Span, merge_spans
from sealpipe.spellings.needles import MIN_LENGTH

MARK: Final = b"***"
"""What replaces a value that was found."""
_UNSEEN: Final = MIN_LENGTH - 1
"""Bytes of a possible value that may be shown early: so short a value is not redacted at all."""


class Redactor:
    """Redacts one stream. Holds back only what may be the beginning of a value."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._held = b""
        self._begun = 0
        """How many bytes of a possible value are held."""
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
        end, self._begun = self._finder.find_open(data)
        return self._release(data, end)

    def settle(self) -> bytes:
        """Return what may be shown although more may follow, while nothing comes.

        Up to three bytes of a value.
        """
        if self._covered or self._begun > _UNSEEN:
            return b""
        shown, self._shown = self._held[self._shown :], len(self._held)
        return shown

    def finish(self) -> bytes:
        """Return what is left at the end of the stream."""
        return self._release(self._held, len(self._held))

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

    def _find_spans(self, data: bytes) -> list[Span]:
        """Return where values are: sorted, disjoint and not touching."""
        covered = [(0, self._covered)] if self._covered else []
        return merge_spans(covered + self._finder.find(data))
