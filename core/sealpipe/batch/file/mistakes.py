"""Mistakes in a batch file or its rows.

All are collected, each with its place and its remedy, and told at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sealpipe.api.responses import escape_text
from sealpipe.errors import PluginError, UsageError, find_similar

_MAX_LINE = 1000
"""Characters of a mistake's line."""
_MAX_SHOWN = 50


class Place(NamedTuple):
    """A place in a file: line and column in characters, from 1, or 0 if unknown.

    Or a row and the names of its columns.

    `name` is empty for a place that is not in a row.
    """

    file: str
    line: int = 0
    column: int = 0
    name: str = ""

    def __str__(self) -> str:
        position = "".join(f":{number}" for number in (self.line, self.column) if number)
        return f"{self.file}{position}" + (f", {self.name}" if self.name else "")


class Mistake(NamedTuple):
    """What is wrong where, and what to do."""

    place: Place
    problem: str
    remedy: str = ""

    def __str__(self) -> str:
        """The mistake as one line, escaped: all three can contain text of the file."""
        return escape_text(
            f"{self.place}: {self.problem}" + (f"; {self.remedy}" if self.remedy else ""), _MAX_LINE
        )


class BatchFileError(UsageError):
    """A batch file or its rows have mistakes.

    `mistakes` are all of them, in the order of the files. Nothing was sent.

    The message is a line with their number, followed by one line for each of them.
    """

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        number = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        lines = [f"{escape_text(file)}: {number}; nothing was sent", *map(str, self.mistakes)]
        super().__init__("\n".join(lines), remedy="correct them, and run the command again")


class MistakeCollector:
    """The mistakes that are found while a batch file is read. `file` is its name."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: dict[Mistake, None] = {}
        self._places: set[Place] = set()

    def __len__(self) -> int:
        return len(self._found)

    def has(self, place: Place) -> bool:
        """Return whether there is a mistake at a place."""
        return place in self._places

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self._found)

    def add(self, place: Place, problem: str, remedy: str = "") -> None:
        """Add a mistake; the same one counts once."""
        self._found[Mistake(place, problem, remedy)] = None
        self._places.add(place)

    @contextmanager
    def catch(self, place: Place, prefix: str = "") -> Iterator[None]:
        """Turn an error that says what is wrong with a value into a mistake at a place."""
        try:
            yield
        except (UsageError, PluginError) as error:
            self.add(place, f"{prefix}{error.message}", error.remedy)

    def raise_all(self) -> None:
        """Raise BatchFileError if there are mistakes.

        Those of the batch file first, then by file and line.
        """
        if self._found:
            raise BatchFileError(self.file, sorted(self._found, key=self._order))

    def _order(self, mistake: Mistake) -> tuple[bool, str, int, int]:
        place = mistake.place
        return place.file != self.file, place.file, place.line, place.column


def name_text(text: str) -> str:
    """Return a name of a file as messages show it.

    A longer one than ours may be a misplaced secret.
    """
    return repr(text) if len(text) <= _MAX_SHOWN else f"a name of {len(text)} characters"


def suggest_name(name: str, known: Iterable[str], what: str) -> str:
    """Suggest the nearest known name, or all of them."""
    names = list(known)
    if matches := find_similar(name.lower(), names) or find_similar(name, names):
        return f"did you mean {matches[0]}?"
    shown = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
    return f"{what} {shown}" if names else f"{what} none"
