"""What `*` stands for in every pattern of sealpipe.

Any number of characters, or none, of those that its place allows.

    names       all characters: names of this machine, stores, recipients and tools (`matches_name`)
    words       those of `is_word`: recipients, arguments and variables of an assistant's policy
    references  those of `is_segment`, in one part of a path or one key; `**` at the end is any rest

In names, `?` is one character and `[...]` one of some, as in a shell. An assistant's policy has no
other wildcards, for there `?` begins the parameters of a reference; and its `*` stands only for
characters that no reader takes for something else, so that nothing an assistant writes goes around
a pattern. Everything else stands for itself. Pure.

`*` alone in a selector (every key), and in what a rehearsal's fault applies to (one whole part), is
no pattern.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from sealpipe.errors import UsageError
from sealpipe.parsing import begins_special

REST: Final = "**"
"""The last part of a pattern that stands for one or more parts."""
_SPECIAL: Final = frozenset("*?[")
_WORD: Final = frozenset(string.ascii_letters + string.digits + "._+-")
_NEVER_IN_SEGMENTS: Final = frozenset('/\\%?#{}*:"')
"""Separators, escapes, placeholders, wildcards, and the `:` of another form of name (an ARN, an
address).
"""


def matches_name(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern with `*`, `?` and `[...]`. Case matters."""
    return fnmatchcase(name, pattern) if _SPECIAL & set(pattern) else name == pattern


def is_word(character: str) -> bool:
    """Return whether `*` matches a character in recipients, arguments, variables, parameters."""
    return character in _WORD


def is_segment(character: str) -> bool:
    """Return whether `*` stands for a character in the segments and keys of references."""
    return character.isprintable() and character not in _NEVER_IN_SEGMENTS


class Wildcard:
    """A text in which each `*` stands for any number of characters of one kind.

    A part of a path that begins with `*` matches none that begins with `.`, `-` or `~`
    (`begins_special`).
    """

    def __init__(self, text: str, is_free: Callable[[str], bool] = is_word) -> None:
        self._pieces = text.split("*")
        self._is_free = is_free

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches.

        One that readers may take for another matches only literally.
        """
        first, *others = self._pieces
        if not others:
            return text == first
        *middle, last = others
        end = len(text) - len(last)
        if end < len(first) or not text.startswith(first) or not text.endswith(last):
            return False
        position, gaps = len(first), []
        for piece in middle:  # the first place of each piece: no text makes a pattern try them all
            found = text.find(piece, position, end)
            if found < 0:
                return False
            gaps.append((position, found))
            position = found + len(piece)
        gaps.append((position, end))
        are_free = all(self._may_stand_for(text, start, stop) for start, stop in gaps)
        return are_free and is_plain(text)

    def _may_stand_for(self, text: str, start: int, stop: int) -> bool:
        return all(map(self._is_free, text[start:stop])) and not begins_special(
            text[:start], text[start:]
        )


def is_plain(text: str) -> bool:
    """Return whether text stands for itself only.

    Normalized (NFKC), without outer spaces and without `.` and `..`.
    """
    is_normal = bool(text) and text == text.strip() and unicodedata.normalize("NFKC", text) == text
    return is_normal and not {".", ".."} & set(text.split("/"))


class PathWildcard:
    """Segments that match one by one; a last `**` stands for one or more of them.

    Raises UsageError.
    """

    def __init__(self, segments: Sequence[str]) -> None:
        if find_inner_rest(segments):
            raise UsageError(
                "** is not the whole last part", remedy="write ** only at the end: secret/app/**"
            )
        self._has_rest = segments[-1] == REST
        own = segments[:-1] if self._has_rest else segments
        self._segments = [Wildcard(segment, is_segment) for segment in own]

    def matches(self, segments: Sequence[str]) -> bool:
        """Return whether each segment matches."""
        own, rest = segments[: len(self._segments)], segments[len(self._segments) :]
        if len(own) < len(self._segments) or bool(rest) != self._has_rest:
            return False
        is_rest_free = all(map(ANY_SEGMENT.matches, rest))
        return is_rest_free and all(
            each.matches(text) for each, text in zip(self._segments, own, strict=True)
        )


ANY_SEGMENT: Final = Wildcard("*", is_segment)
"""Matches each segment that a `*` alone stands for."""


def find_inner_rest(parts: Sequence[str]) -> bool:
    """Return whether `**` stands elsewhere than as the whole last part."""
    return any(REST in part for part in parts[:-1]) or (REST in parts[-1] and parts[-1] != REST)
