"""The rows of a batch.

A CSV file as spreadsheets write it, JSON Lines, or `[[row]]` tables in the batch file.

A row is text under the names of columns. It is never more than data: nothing here interprets a
cell.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from sealpipe.batch.file.document import Document, UnreadableFileError, read_file
from sealpipe.batch.file.mistakes import MistakeCollector, Place, name_text, suggest_name
from sealpipe.errors import EncodingError
from sealpipe.wire import jsontext

MAX_SIZE: Final = 64 * 1024 * 1024
"""Bytes of a file with rows."""
MAX_ROWS: Final = 100_000
MAX_COLUMNS: Final = 200
MAX_KEY: Final = 200
"""Characters of a row's key."""

_DELIMITERS: Final = ",;\t"
_SPREADSHEET: Final = "save it as `CSV UTF-8`"


@dataclass(frozen=True, slots=True, repr=False)
class Row:
    """A row: its key, all its cells by the names of their columns, and its place."""

    key: str
    values: Mapping[str, str]
    place: Place


class RowTable(NamedTuple):
    """The names of all columns, and the rows in the order of their file.

    A row lacks empty cells of JSON.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


class _Cells(NamedTuple):
    place: Place
    values: dict[str, str]


def read_rows(document: Document, key: str | None, mistakes: MistakeCollector) -> RowTable | None:
    """Read the rows that a batch file names or contains.

    None if they cannot be read; mistakes are added.
    """
    source, tables = document.members.get("rows"), document.members.get("row")
    if (source is None) == (tables is None):
        what = (
            "there are no rows"
            if source is None
            else "rows are given twice, in a file and as [[row]] tables"
        )
        mistakes.add(
            document.place("row") if source is not None else document.place(),
            what,
            'write rows = "FILE.csv" (or .jsonl), or [[row]] tables, not both',
        )
        return None
    if source is not None and not (isinstance(source, str) and source):
        mistakes.add(
            document.place("rows"), "rows is not the name of a file", 'write rows = "vendors.csv"'
        )
        return None
    before = len(mistakes)
    try:
        if source is None:
            cells = list(_limit(_read_tables(document, tables, mistakes)))
        else:
            cells = _read_row_file(document.folder / source, mistakes)
    except UnreadableFileError as error:
        place = document.place("row") if source is None else document.place("rows")
        mistakes.add(place, error.problem, error.remedy)
        return None
    columns = tuple(dict.fromkeys(name for each in cells for name in each.values))
    if not cells and len(mistakes) == before:
        mistakes.add(
            document.place("rows" if source is not None else "row"),
            "there is no row",
            "add at least one row",
        )
    if not cells:
        return None
    if len(columns) > MAX_COLUMNS:
        mistakes.add(
            cells[0].place,
            f"there are more than {MAX_COLUMNS} columns",
            "remove those that are not used",
        )
        return None
    return RowTable(columns, _identify_rows(document, key, cells, columns, mistakes))


def _identify_rows(
    document: Document,
    key: str | None,
    cells: list[_Cells],
    columns: tuple[str, ...],
    mistakes: MistakeCollector,
) -> tuple[Row, ...]:
    """Return the rows with their keys; without one, if the key's column is not known."""
    if key is not None and key not in columns:
        remedy = suggest_name(key, columns, "the columns are")
        mistakes.add(document.place("key"), f"there is no column {name_text(key)}", remedy)
        key = None
    first_by_key: dict[str, int] = {}
    rows = []
    for place, values in cells:
        if key is None:
            rows.append(Row("", values, place))
            continue
        # One text has one key, whatever composed its accents.
        name = unicodedata.normalize("NFC", values.get(key, ""))
        if problem := _find_key_problem(name):
            mistakes.add(place._replace(name=key), *problem)
        elif name in first_by_key:
            problem = (
                f"the key is the same as in line {first_by_key[name]}",
                "give each row a key of its own",
            )
            mistakes.add(place._replace(name=key), *problem)
        first_by_key.setdefault(name, place.line)
        rows.append(Row(name, values, place))
    return tuple(rows)


def _find_key_problem(name: str) -> tuple[str, str] | None:
    if not name:
        return "the key is empty", "give each row a key that stays the same from run to run"
    if name != name.strip() or not name.isprintable():
        return "the key begins or ends with a space, or contains a control character", "remove it"
    if len(name) > MAX_KEY:
        return f"the key has more than {MAX_KEY} characters", "use a column with short names"
    return None


def _limit(cells: Iterable[_Cells]) -> Iterator[_Cells]:
    for number, each in enumerate(cells):
        if number == MAX_ROWS:
            raise UnreadableFileError(
                f"there are more than {MAX_ROWS} rows", "divide them into several batches"
            )
        yield each


def _read_row_file(path: Path, mistakes: MistakeCollector) -> list[_Cells]:
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".jsonl", ".ndjson"):
        raise UnreadableFileError(
            "the file with the rows has no ending that says what it is",
            "name a .csv, .tsv, .jsonl or .ndjson file",
        )
    content = read_file(path, MAX_SIZE)
    place = Place(path.name)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        line = content.count(b"\n", 0, max(content.find(b"\0"), 0)) + 1
        problem = "the file contains a NUL byte: it is UTF-16, or no text"
        mistakes.add(place._replace(line=line), problem, _SPREADSHEET)
        return []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = (
            f"the file is not UTF-8: the byte 0x{content[error.start]:02X} looks like Latin-1 "
            "(Windows-1252)"
        )
        mistakes.add(
            place._replace(line=line),
            problem,
            f"{_SPREADSHEET}, or: iconv -f WINDOWS-1252 -t UTF-8",
        )
        return []
    read = _read_csv if kind in (".csv", ".tsv") else _read_json_lines
    return list(_limit(read(text, place, mistakes)))


def _read_csv(text: str, place: Place, mistakes: MistakeCollector) -> Iterator[_Cells]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_find_delimiter(text), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for record in reader:
            here, line = place._replace(line=line), reader.line_num + 1
            if not any(record):
                continue  # a blank line, or the empty rows that spreadsheets write
            if header is None:
                header = _check_header(record, here, mistakes)
            elif len(record) > len(header) and any(record[len(header) :]):
                problem = f"the row has {len(record)} cells, but there are {len(header)} columns"
                mistakes.add(here, problem, "put a cell that contains the delimiter in quotes")
            elif len(record) < len(header):
                problem = f"the row has {len(record)} of {len(header)} cells"
                mistakes.add(
                    here, problem, "leave no cell out; an empty one still has its delimiter"
                )
            else:
                yield _Cells(
                    here, {name: cell for name, cell in zip(header, record, strict=False) if name}
                )
    except csv.Error as error:
        problem = f"the row cannot be read as CSV: {error}"
        mistakes.add(
            place._replace(line=line), problem, 'close every quote; a " inside quotes is written ""'
        )


def _find_delimiter(text: str) -> str:
    """Return what separates the names of the first line: a comma, a semicolon or a tab."""
    first = re.search(r"[^\r\n]+", text)
    plain = re.sub(r'"[^"]*"', "", first[0]) if first else ""
    return max(_DELIMITERS, key=plain.count)


def _check_header(record: list[str], place: Place, mistakes: MistakeCollector) -> list[str]:
    """Return the names of the columns; without those at the end that have none."""
    header = list(record)
    while not header[-1]:
        header.pop()
    for number, name in enumerate(header, 1):
        if not name.strip():
            mistakes.add(
                place, f"column {number} has no name", "give each column a name in the first line"
            )
        elif name in header[: number - 1]:
            mistakes.add(
                place,
                f"two columns are called {name_text(name)}",
                "give each column a name of its own",
            )
    return header


def _read_json_lines(text: str, place: Place, mistakes: MistakeCollector) -> Iterator[_Cells]:
    for line, raw in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if not raw.strip():
            continue
        here = place._replace(line=line)
        try:
            value = jsontext.loads(raw.encode())
        except EncodingError as error:
            mistakes.add(here, f"the line is not JSON: {error.message}", "write one object a line")
            continue
        yield from _read_members(value, here, mistakes)


def _read_tables(document: Document, tables: Any, mistakes: MistakeCollector) -> Iterator[_Cells]:
    if not isinstance(tables, list):
        mistakes.add(
            document.place("row"), "row is not an array of tables", "begin each row with [[row]]"
        )
        return
    for number, table in enumerate(tables):
        yield from _read_members(table, document.place("row", number)._replace(column=0), mistakes)


def _read_members(value: Any, place: Place, mistakes: MistakeCollector) -> Iterator[_Cells]:
    if not isinstance(value, dict):
        mistakes.add(
            place,
            "the row is not an object with the names of columns",
            'write {"name": "acme", ...}',
        )
        return
    cells = {}
    for name, each in value.items():
        cell = _format_cell(each)
        if cell is None:
            what = "the cell is not text, a number, true or false"
            mistakes.add(
                place._replace(name=name_text(name)),
                what,
                "a row is flat: give each value a column",
            )
        else:
            cells[name] = cell
    yield _Cells(place, cells)


def _format_cell(value: Any) -> str | None:
    """Return a value of JSON, YAML or TOML as text; None if it has no text."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return jsontext.written(value) if isinstance(value, int | float) else None
