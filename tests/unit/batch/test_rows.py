"""Rows as spreadsheets and programs write them; a mistake in one is named by its line and
column.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.batch.file.document import Document
from sealpipe.batch.file.mistakes import MistakeCollector
from sealpipe.batch.file.rows import MAX_ROWS, Row, RowTable, read_rows


def read(
    folder: Path, content: str | bytes, name: str = "rows.csv"
) -> tuple[RowTable | None, list[str]]:
    """Read rows, and return what is wrong with them."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    mistakes = MistakeCollector("batch.toml")
    document = Document("batch.toml", folder, {"rows": name, "key": "name"}, lambda _: (3, 1), {})
    table = read_rows(document, "name", mistakes)
    return table, [str(each) for each in mistakes]


def rows(folder: Path, content: str | bytes, name: str = "rows.csv") -> tuple[Row, ...]:
    """Read rows that are right."""
    table, mistakes = read(folder, content, name)
    assert mistakes == []
    assert table is not None
    return table.rows


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_csv_as_spreadsheets_write_it(tmp_path: Path, delimiter: str, end: str, start: str) -> None:
    lines = ["name,note", 'acme,"two\nlines, ""quoted"""', "", ",", "bêta,=1+1"]
    found = rows(tmp_path, start + end.join(lines).replace(",", delimiter))
    note = "two\nlines, " if delimiter == "," else f"two\nlines{delimiter} "
    assert [dict(row.values) for row in found] == [
        {"name": "acme", "note": f'{note}"quoted"'},
        {"name": "bêta", "note": "=1+1"},
    ]


def test_a_row_is_named_by_the_line_it_begins_in(tmp_path: Path) -> None:
    found = rows(tmp_path, 'name,note\r\na,"1\r\n2"\r\n\r\nb,x\r\n')
    assert [str(row.place) for row in found] == ["rows.csv:2", "rows.csv:5"]


def test_empty_columns_at_the_end_are_no_columns(tmp_path: Path) -> None:
    assert [dict(row.values) for row in rows(tmp_path, "name;x;;\na;b;;\n")] == [
        {"name": "a", "x": "b"}
    ]


def test_json_lines_and_csv_give_the_same_rows(tmp_path: Path) -> None:
    text = '{"name": "a", "n": 1, "x": 1.0, "yes": true, "none": null}\n\n{"name": "b"}\r\n'
    found = rows(tmp_path, text, "rows.jsonl")
    assert [dict(row.values) for row in found] == [
        {"name": "a", "n": "1", "x": "1.0", "yes": "true", "none": ""},
        {"name": "b"},
    ]
    assert [row.place.line for row in found] == [1, 3]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            b"name\nM\xfcller\n",
            "rows.csv:2: the file is not UTF-8: the byte 0xFC looks like Latin-1 (Windows-1252); ",
        ),
        (
            "name\na\n".encode("utf-16"),
            "rows.csv:1: the file contains a NUL byte: it is UTF-16, or no text; ",
        ),
        ("name\na\n".encode("utf-16-le"), "rows.csv:1: the file contains a NUL byte: "),
        (b"name\na\nb\0\n", "rows.csv:3: the file contains a NUL byte: "),
        (b"name\n\xed\xa0\x80\n", "rows.csv:2: the file is not UTF-8: "),
        (
            'name,x\na,"b\n',
            "rows.csv:2: the row cannot be read as CSV: unexpected end of data; close every quote",
        ),
        (
            'name,x\na,"b"c\n',
            "rows.csv:2: the row cannot be read as CSV: ',' expected after '\"'; ",
        ),
        (
            "name,x\na," + "b" * 200_000,
            "rows.csv:2: the row cannot be read as CSV: field larger than field limit",
        ),
        ("name,x\na\n", "rows.csv:2: the row has 1 of 2 cells; "),
        ("name,x\na,b,c\n", "rows.csv:2: the row has 3 cells, but there are 2 columns; "),
        ("name,x,name\na,b,c\n", "rows.csv:1: two columns are called 'name'; "),
        ("name,,x\na,b,c\n", "rows.csv:1: column 2 has no name; "),
        ("nam,x\na,b\n", "batch.toml:3:1: there is no column 'name'; did you mean nam?"),
        ("name|x\na|b\n", "batch.toml:3:1: there is no column 'name'; did you mean name|x?"),
        ("name,x\n", "batch.toml:3:1: there is no row; "),
        ("", "batch.toml:3:1: there is no row; "),
        ("name,x\na,1\na,2\n", "rows.csv:3, name: the key is the same as in line 2; "),
        ("name,x\n,1\n", "rows.csv:2, name: the key is empty; "),
        (
            "name,x\n a,1\n",
            "rows.csv:2, name: the key begins or ends with a space, or contains a control",
        ),
        (
            "name,x\na\x1b,1\n",
            "rows.csv:2, name: the key begins or ends with a space, or contains a control",
        ),
        (f"name,x\n{'a' * 201},1\n", "rows.csv:2, name: the key has more than 200 characters; "),
        ("name,x\ne\u0301,1\n\u00e9,2\n", "rows.csv:3, name: the key is the same as in line 2; "),
        (
            "name," + ",".join(f"c{n}" for n in range(200)) + "\na" + ",1" * 200,
            "rows.csv:2: there are more than 200",
        ),
        (
            "name\n" + "\n".join(map(str, range(MAX_ROWS + 1))),
            "batch.toml:3:1: there are more than 100000 rows; ",
        ),
    ],
)
def test_wrong_csv_is_told_with_line_and_column(
    tmp_path: Path, content: str | bytes, line: str
) -> None:
    _, mistakes = read(tmp_path, content)
    assert len(mistakes) == 1, mistakes
    assert mistakes[0].startswith(line)


def test_every_row_that_is_wrong_is_told(tmp_path: Path) -> None:
    _, mistakes = read(tmp_path, "name,x\n" + "a\n" * 30)
    assert [each.partition(": ")[0] for each in mistakes] == [
        f"rows.csv:{line}" for line in range(2, 32)
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{"name": "a"\n', "rows.jsonl:1: the line is not JSON: the text is not JSON; "),
        (
            '{"name": "a", "name": "b"}\n',
            "rows.jsonl:1: the line is not JSON: an object has two members of one name",
        ),
        (
            '{"name": "\\ud800"}\n',
            "rows.jsonl:1: the line is not JSON: half a surrogate pair is not text; ",
        ),
        ("[" * 200 + "\n", "rows.jsonl:1: the line is not JSON: "),
        ("[" * 200_000 + "\n", "rows.jsonl:1: the line is not JSON: "),
        ("[1]\n", "rows.jsonl:1: the row is not an object with the names of columns; "),
        (
            '\n{"name": "a", "x": [1]}\n',
            "rows.jsonl:2, 'x': the cell is not text, a number, true or false; ",
        ),
        ('{"name": ""}\n', "rows.jsonl:1, name: the key is empty; "),
    ],
)
def test_wrong_json_lines_are_told_with_line_and_name(
    tmp_path: Path, content: str, line: str
) -> None:
    _, mistakes = read(tmp_path, content, "rows.jsonl")
    assert len(mistakes) == 1, mistakes
    assert mistakes[0].startswith(line)


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "missing.csv", "a\0.csv"])
def test_a_file_of_rows_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    mistakes = MistakeCollector("batch.toml")
    assert (
        read_rows(
            Document("batch.toml", tmp_path, {"rows": name}, lambda _: (3, 1), {}), "name", mistakes
        )
        is None
    )
    assert [each.place for each in mistakes] == [("batch.toml", 3, 1, "")]


@pytest.mark.parametrize(
    "members",
    [{}, {"rows": "rows.csv", "row": []}, {"rows": 1}, {"rows": ""}, {"row": 1}, {"row": []}],
)
def test_rows_are_a_file_or_tables(tmp_path: Path, members: dict[str, object]) -> None:
    mistakes = MistakeCollector("batch.toml")
    assert (
        read_rows(Document("batch.toml", tmp_path, members, lambda _: (3, 1), {}), "name", mistakes)
        is None
    )
    assert len(mistakes) == 1


_cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(
    st.lists(st.tuples(_cells, _cells), min_size=1, max_size=5), st.sampled_from([",", ";", "\t"])
)
def test_what_a_csv_writer_writes_reads_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]], delimiter: str
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows(
        [("name", "one", "two"), *((f"row {number}", *pair) for number, pair in enumerate(cells))]
    )
    folder = tmp_path_factory.mktemp("csv")
    assert [
        (row.values["one"], row.values["two"]) for row in rows(folder, text.getvalue())
    ] == cells
    lines = "\n".join(
        json.dumps({"name": f"row {n}", "one": a, "two": b}) for n, (a, b) in enumerate(cells)
    )
    assert [row.values for row in rows(folder, lines, "r.jsonl")] == [
        row.values for row in rows(folder, text.getvalue())
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_mistakes(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("any.csv", "any.jsonl"):
        table, mistakes = read(folder, content, name)
        assert mistakes or table
