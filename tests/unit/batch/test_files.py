"""Batch files in TOML, YAML and JSON: what they mean, where things stand in them, and what is no
batch file.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.document import MAX_SIZE, read_document
from sealpipe.batch.file.mistakes import BatchFileError
from sealpipe.batch.file.positions import Positions
from sealpipe.batch.file.reading import load_definition, read_definition
from sealpipe.batch.file.render import render_row
from unit.batch.batches import REQUEST, ROWS, mistakes_of, read

MEMBERS = {
    "name": "vendors",
    "kind": "request",
    "key": "name",
    "row": [
        {"name": "acme", "email": "ann@example.com", "floor": 3},
        {"name": "beta", "email": "b@example.com"},
    ],
    "request": {
        "ask": ["Password"],
        "send": ["email:{email}"],
        "max-submissions": 2,
        "title": "F {floor}",
    },
    "notify": {"send": ["slack:#x"], "rows": True},
}
TOML = """
name = "vendors"
kind = "request"
key = "name"
request = { ask = ["Password"], send = ["email:{email}"], max-submissions = 2, title = "F {floor}" }
notify.send = ["slack:#x"]
notify.rows = true
[[row]]
name = "acme"
email = "ann@example.com"
floor = 3
[[row]]
name = "beta"
email = "b@example.com"
"""
YAML = """
name: vendors
kind: request
key: name
request: {ask: [Password], send: ["email:{email}"], max-submissions: 2, title: "F {floor}"}
notify: {send: ["slack:#x"], rows: true}
row:
  - {name: acme, email: ann@example.com, floor: 3}
  - {name: beta, email: b@example.com}
"""


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def meant(definition: BatchDefinition) -> list[object]:
    return [render_row(definition, row) for row in definition.rows]


def test_toml_yaml_and_json_of_one_shape_mean_the_same(tmp_path: Path) -> None:
    read = [
        read_definition(written(tmp_path, name, content))
        for name, content in [
            ("a.toml", TOML),
            ("b.yaml", YAML),
            ("c.yml", YAML),
            ("d.json", json.dumps(MEMBERS)),
        ]
    ]
    assert [meant(each) for each in read[1:]] == [meant(read[0])] * 3
    assert render_row(read[0], read[0].rows[0]).arguments["title"] == "F 3"
    assert all(each.notify and each.notify.rows for each in read)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.toml", TOML), ("b.yaml", YAML), ("c.json", json.dumps(MEMBERS, indent=1))],
)
def test_a_mistake_has_its_line_and_column_in_each_format(
    tmp_path: Path, name: str, content: str
) -> None:
    wrong = content.replace("max-submissions", "max-x")
    (mistake,) = mistakes_of(written(tmp_path, name, wrong))
    before = wrong[: wrong.index("max-x")].split("\n")
    quote = 1 if name.endswith("json") else 0
    assert mistake.place == (name, len(before), len(before[-1]) + 1 - quote, "")


@pytest.mark.parametrize(("name", "content", "line"), [("a.toml", TOML, 12), ("b.yaml", YAML, 9)])
def test_a_row_in_the_file_is_named_by_its_line(
    tmp_path: Path, name: str, content: str, line: int
) -> None:
    (mistake,) = mistakes_of(written(tmp_path, name, content.replace("b@example.com", "")))
    assert str(mistake.place) == f"{name}:{line}, email"


def test_a_byte_order_mark_is_not_part_of_the_file(tmp_path: Path) -> None:
    assert (
        read_definition(written(tmp_path, "a.toml", b"\xef\xbb\xbf" + TOML.encode())).name
        == "vendors"
    )


def test_yaml_without_its_package_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (mistake,) = mistakes_of(written(tmp_path, "a.yaml", YAML))
    assert mistake.remedy == "pip install 'sealpipe[yaml]', or write it as TOML"


DEEP = 20_000


@pytest.mark.parametrize(
    ("name", "content", "place", "words"),
    [
        ("a.toml", b"name = \n", "a.toml:1:8", "not valid TOML"),
        ("a.toml", b"name = 'x'\nname = 'y'\n", "a.toml:2:11", "set twice"),
        ("a.toml", b"[request]\n[request]\n", "a.toml:2:9", "set twice"),
        ("a.toml", b"a = {b = 1, b = 2}\n", "a.toml:1:18", "set twice"),
        ("a.toml", b"name = 'a\0'\n", "a.toml:1:10", "not valid TOML"),
        ("a.toml", b"a = 1\nname = '\xfc'\n", "a.toml:2", "not UTF-8"),
        ("a.toml", b"name = 'x", "a.toml", "something is not closed"),
        ("a.toml", b"a = " + b"[" * DEEP, "a.toml", "nested too deeply"),
        ("a.toml", b"a." * 2000 + b"b = 1\n", "a.toml", "nested too deeply"),
        ("a.toml", b"[" + b"a." * 2000 + b"b]\n", "a.toml", "nested too deeply"),
        ("a.yaml", b"a: " + b"[" * DEEP, "a.yaml", "nested too deeply"),
        ("a.yaml", b"a: 1\na: 2\n", "a.yaml:2:1", "a key is repeated"),
        ("a.yaml", b"a: 'x\n", "a.yaml:2:1", "not YAML"),
        ("a.yaml", b"a: \0\n", "a.yaml", "not YAML"),
        ("a.yaml", b"a: 1\nb: \xfc\n", "a.yaml:2", "not UTF-8"),
        ("a.yaml", b"", "a.yaml", "not a table of options"),
        ("a.yaml", b"- a\n", "a.yaml", "not a table of options"),
        ("a.json", b"[" * DEEP + b"]" * DEEP, "a.json", "levels of arrays"),
        ("a.json", b'{\n "a": 1,\n "a": 2}', "a.json:3:2", "two members of one name"),
        ("a.json", b'{\n "a": }', "a.json:2:7", "not JSON"),
        ("a.json", b'{"a": "\\ud800"}', "a.json", "half a surrogate pair"),
        ("a.json", b"\n\xfc", "a.json:2", "not UTF-8"),
        ("a.json", b"1", "a.json", "not a table of options"),
        ("a.txt", b"", "a.txt", "does not say what it is"),
    ],
)
def test_what_is_no_batch_file_is_told_with_its_place(
    tmp_path: Path, name: str, content: bytes, place: str, words: str
) -> None:
    (mistake,) = mistakes_of(written(tmp_path, name, content))
    assert words in mistake.problem
    assert str(mistake.place) == place
    assert mistake.remedy


@pytest.mark.parametrize("name", ["missing.toml", "a\0.toml", ".", "x" * 300 + ".toml"])
def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.toml").mkdir()
    for path in (tmp_path / name, tmp_path / "folder.toml"):
        assert mistakes_of(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (mistake,) = mistakes_of(written(tmp_path, "a.toml", b"#" * (MAX_SIZE + 1)))
    assert mistake.problem == "the file is larger than 8 MiB"


def test_aliases_of_yaml_cannot_multiply(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{last}'] * 9)}]\n"
        for last, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert len(mistakes_of(written(tmp_path, "a.yaml", bomb + "row: *i\n"))) < 40


@pytest.mark.parametrize(
    "value", ["1", "[]", "{}", "true", "1979-05-27 07:32:00", "nan", "[[1]]", "[{a = 1}]"]
)
@pytest.mark.parametrize(
    "name", ["name", "kind", "rows", "key", "row", "request", "collect", "remind", "notify"]
)
def test_a_value_of_any_type_anywhere_is_a_mistake_or_right(
    tmp_path: Path, name: str, value: str
) -> None:
    kept = "".join(f"{each} = 'request'\n" for each in ("kind",) if each != name)
    assert mistakes_of(written(tmp_path, "a.toml", f"{kept}{name} = {value}\n"))


@pytest.mark.parametrize(
    "value",
    ["1", "[1]", "[]", "{}", "true", "1979-05-27 07:32:00", "nan", "'{'", "'\\u0000'", "''"],
)
@pytest.mark.parametrize(
    "name",
    [
        "ask",
        "title",
        "expires-in",
        "max-submissions",
        "passcode-from",
        "restrict-domain",
        "send",
        "param",
    ],
)
def test_an_option_of_any_type_is_a_mistake_or_right(tmp_path: Path, name: str, value: str) -> None:
    tables = "".join(
        line for line in REQUEST.splitlines(keepends=True) if not line.startswith(f"{name} =")
    )
    head = "name = 'a'\nkind = 'request'\nkey = 'name'\nrows = 'rows.csv'\n"
    (tmp_path / "rows.csv").write_text(ROWS)
    file = written(tmp_path, "a.toml", f"{head}{tables}{name} = {value}\n")
    try:
        outcome = read_definition(file).name
    except BatchFileError as mistake:
        outcome = mistake.message
    assert outcome == "a" or name in outcome


TRICKY = '''# [comment]
"quoted.key" = """
[not a table]
x = 1 """"
'literal' = \'\'\'a
b\'\'\'
  dotted . "in\\u0066o" = 1979-05-27 07:32:00 # = 2
array = [ # [
  "a]", 'b"', [1, 2,], { x = "}", y.z = [3] },
]
[table."sub.key"]
empty = ""
[[ list ]]
a = 1
[list.inner]
b = true
[[list]]
[[list.deep]]
c = """\\
  \\""" ]"""
'''


@pytest.mark.parametrize(
    ("path", "position"),
    [
        (("quoted.key",), (2, 1)),
        (("literal",), (5, 1)),
        (("dotted", "info"), (7, 3)),
        (("array", 0), (9, 3)),
        (("array", 1), (9, 9)),
        (("array", 2, 1), (9, 19)),
        (("array", 3, "x"), (9, 26)),
        (("array", 3, "y", "z", 0), (9, 42)),
        (("table", "sub.key", "empty"), (12, 1)),
        (("list", 0), (13, 1)),
        (("list", 0, "inner", "b"), (16, 1)),
        (("list", 1), (17, 1)),
        (("list", 1, "deep", 0, "c"), (19, 1)),
        (("list", 1, "nothing"), (17, 1)),
        (("nothing",), (1, 1)),
    ],
)
def test_positions_in_tricky_toml(path: tuple[str | int, ...], position: tuple[int, int]) -> None:
    assert tomllib.loads(TRICKY)["list"][1]["deep"][0]["c"] == '""" ]'
    assert Positions(TRICKY).scan_toml().find(path) == position


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_values, st.sampled_from([None, 1]))
def test_every_member_of_json_is_found_at_its_name(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    positions, starts = Positions(text).scan_json(), [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def check(path: tuple[str | int, ...], value: object) -> None:
        pairs = (
            enumerate(value)
            if isinstance(value, list)
            else value.items()
            if isinstance(value, dict)
            else ()
        )
        for name, each in pairs:
            line, column = positions.find((*path, name))
            shown = json.dumps(name if isinstance(value, dict) else each)
            assert text[starts[line - 1] + column - 1 :].startswith(shown[0])
            assert isinstance(each, dict | list) or text[
                starts[line - 1] + column - 1 :
            ].startswith(shown)
            check((*path, name), each)

    check((), value)


def test_a_stored_definition_renders_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Hello {name}: {link}")
    definition = read(
        tmp_path, REQUEST + "[remind]\nafter = ['1d']\nmessage-template = 'note.txt'\n"
    )
    (tmp_path / "note.txt").unlink()
    stored = load_definition(json.loads(json.dumps(definition.dump())))
    assert stored.rows == ()
    assert [render_row(stored, row) for row in definition.rows] == meant(definition)


def test_a_document_is_named_by_its_file_only(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "a.toml", TOML)).place("request", "ask").file == "a.toml"
