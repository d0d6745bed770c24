"""Where the values of a TOML or JSON text stand: line and column of each.

Neither `tomllib` nor any other TOML library for Python keeps positions. So this scans a text that
was parsed before, and therefore only has to find where keys and values begin. It uses no recursion.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

Path = tuple[str | int, ...]
"""Names of members and numbers of elements, from the top: `("request", "send", 0)`."""

_LIMIT: Final = 300_000
"""How many positions are kept: an element beyond has the position of its array."""

_SKIPPED: Final = re.compile(r"(?:[\s,]|#[^\n]*)*")
"""Between values: white space, commas and TOML's comments."""
_TEXT: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'  # up to two quotes may stand before the closing ones
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE: Final = re.compile(r"[^,\]}#\n\r]+")
"""A number, a time, which may contain a space, or true, false or null."""
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_AROUND_KEY: Final = re.compile(r"[ \t\r\n]*")


class Positions:
    """Positions by path.

    `repeated` is that of the first member that an object of JSON has twice.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._offsets: dict[Path, int] = {}
        self.repeated: tuple[int, int] | None = None

    def find(self, path: Path) -> tuple[int, int]:
        """Return line and column of a key or an element, or of the nearest one around it.

        (1, 1) for the whole.
        """
        while path and path not in self._offsets:
            path = path[:-1]
        return self.locate(self._offsets.get(path, 0))

    def locate(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in the text, each from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def _note(self, path: Path, offset: int) -> None:
        if path in self._offsets:
            self.repeated = self.repeated or self.locate(offset)
        elif len(self._offsets) < _LIMIT:
            self._offsets[path] = offset

    def scan_json(self) -> Positions:
        """Find the positions of a JSON text."""
        self._scan_value(self._skip(0), (), json.loads)
        return self

    def scan_toml(self) -> Positions:
        """Find the positions of a TOML text."""
        table: Path = ()
        counts: dict[Path, int] = {}
        position = self._skip(0)
        while position < len(self._text):
            start, text = position, self._text
            if text[position] == "[":
                is_array = text.startswith("[[", position)
                names, position = self._read_key(position + 1 + is_array, _load_toml_text)
                table = self._enter_table(names, start, counts, is_array=is_array)
                position = text.index("]", position) + 1 + is_array
            else:
                names, position = self._read_key(position, _load_toml_text)
                path = self._note_key(table, names, start)
                position = self._scan_value(self._skip(position + 1), path, _load_toml_text)
            position = self._skip(position)
        self.repeated = None
        return self

    def _enter_table(
        self, names: Path, start: int, counts: dict[Path, int], *, is_array: bool
    ) -> Path:
        """Return the path of a table from its header.

        Of an array of tables, the current element's.
        """
        path: Path = ()
        for number, name in enumerate(names, 1):
            path += (name,)
            if number == len(names) and is_array:
                counts[path] = counts.get(path, -1) + 1
            self._note(path, start)
            if path in counts:
                path += (counts[path],)
        self._note(path, start)
        return path

    def _note_key(self, table: Path, names: Path, start: int) -> Path:
        for number in range(1, len(names) + 1):
            self._note(table + names[:number], start)
        return table + names

    def _skip(self, position: int) -> int:
        match = _SKIPPED.match(self._text, position)
        return match.end() if match else position

    def _scan_value(self, position: int, path: Path, load: Callable[[str], str]) -> int:
        """Note what a value contains, and return the position after it."""
        text = self._text
        open_values: list[tuple[Path, list[int]]] = []  # with a counter; an object has none
        while True:
            if text[position] in "[{":
                open_values.append((path, [0] if text[position] == "[" else []))
                position += 1
            else:
                match = _TEXT.match(text, position) or _BARE.match(text, position)
                position = match.end() if match else position + 1
            position = self._skip(position) if open_values else position
            while open_values and text[position] in "]}":
                open_values.pop()
                position = self._skip(position + 1) if open_values else position + 1
            if not open_values:
                return position
            around, counter = open_values[-1]
            if counter:
                path = (*around, counter[0])
                counter[0] += 1
                self._note(path, position)
            else:
                start = position
                names, position = self._read_key(position, load)
                path = self._note_key(around, names, start)
                position = self._skip(position + 1)

    def _read_key(self, position: int, load: Callable[[str], str]) -> tuple[Path, int]:
        """Return the names of a dotted key, and the position of what follows: `=`, `:` or `]`."""
        names: list[str] = []
        while True:
            position = self._pass_blanks(position)
            match = _BARE_KEY.match(self._text, position) or _TEXT.match(self._text, position)
            if match is None:
                return tuple(names), position
            raw = match[0]
            names.append((load(raw) if "\\" in raw else raw[1:-1]) if raw[0] in "\"'" else raw)
            position = self._pass_blanks(match.end())
            if self._text[position : position + 1] != ".":
                return tuple(names), position
            position += 1

    def _pass_blanks(self, position: int) -> int:
        match = _AROUND_KEY.match(self._text, position)
        return match.end() if match else position


def _load_toml_text(raw: str) -> str:
    return str(tomllib.loads(f"text = {raw}")["text"])
