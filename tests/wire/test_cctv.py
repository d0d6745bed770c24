"""Every vector of tests/wire/cctv/, in sealpipe and in WebCrypto: the same verdict, and the one its file names."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sealpipe.wire
from sealpipe import errors
from support.parts import program
from wire import make_cctv, reader

FILES = {path.name: path.read_bytes() for path in sorted(make_cctv.FOLDER.iterdir()) if "." not in path.name}
EXPECTATIONS = {name: reader.parsed(raw)[0]["expect"] for name, raw in FILES.items()}
UNREACHABLE = {
    # Only what is no JSON can bring it about (bytes, a set, a key that is no text), and a vector is text.
    "not-a-json-value",
}
SPELLED_OUT = {
    "bad-": ["key", "value", "type", "language", "filename"],
    "missing-": ["key", "value", "type"],
}


@pytest.mark.parametrize("name", FILES)
def test_a_vector(name: str) -> None:
    assert reader.read(FILES[name]) == reader.demanded(FILES[name])


def test_webcrypto_gives_the_same_verdict_on_every_vector() -> None:
    script = Path(__file__).with_name("cctv.mjs")
    done = subprocess.run([program("node"), str(script)], capture_output=True, text=True, timeout=120)
    theirs = {
        line["file"]: (line["verdict"], line["got"]) for line in map(json.loads, done.stdout.rstrip("\n").split("\n"))
    }
    assert theirs == {name: reader.read(raw) for name, raw in FILES.items()}
    assert (done.returncode, done.stderr) == (0, "")


def test_webcrypto_says_so_where_a_vector_lies(tmp_path: Path) -> None:
    raw = FILES["envelope_no-passcode"]
    (tmp_path / "refused").write_bytes(raw.replace(b"expect: success", b"expect: envelope wrong-key"))
    (tmp_path / "another-text").write_bytes(raw.replace(b"correct horse", b"correct mouse"))
    for name in ("refused", "another-text"):
        only = tmp_path / f"only.{name}"
        only.mkdir()
        (tmp_path / name).rename(only / name)
        done = subprocess.run([program("node"), str(Path(__file__).with_name("cctv.mjs")), str(only)], timeout=60)
        assert done.returncode == 1


def test_the_files_are_what_their_script_makes() -> None:
    assert {name: make_cctv.text(vector) for name, vector in make_cctv.vectors().items()} == FILES


def test_there_are_enough_and_four_in_five_must_be_refused() -> None:
    refused = [name for name, expect in EXPECTATIONS.items() if expect != "success"]
    assert len(FILES) >= 200
    assert len(refused) >= 0.8 * len(FILES)


def test_no_two_vectors_are_the_same() -> None:
    contents: dict[Any, str] = {}
    for name, raw in FILES.items():
        header, body = reader.parsed(raw)
        told = frozenset((key, value) for key, value in header.items() if key not in ("expect", "comment"))
        assert contents.setdefault((told, body), name) == name


def test_every_kind_has_vectors_of_both_outcomes() -> None:
    outcomes = {(reader.parsed(raw)[0]["kind"], EXPECTATIONS[name] == "success") for name, raw in FILES.items()}
    assert outcomes == {(kind, good) for kind in reader.KINDS for good in (True, False)}


def test_every_part_and_every_reason_of_the_wire_format_is_some_vectors_expectation() -> None:
    named = {expect for expect in EXPECTATIONS.values() if expect != "success"}
    assert {expect.split(" ")[0] for expect in named} == parts() | {"usage"}
    unnamed = sorted(reasons() - {expect.rpartition(" ")[2] for expect in named})
    print("reasons that no vector names:", *unnamed)
    assert set(unnamed) == UNREACHABLE


def test_no_vector_names_a_reason_that_the_code_does_not_have() -> None:
    assert {expect.rpartition(" ")[2] for expect in EXPECTATIONS.values()} - reasons() == {"success", "usage"}


def test_the_readme_tells_of_every_kind_and_every_reason() -> None:
    told = (make_cctv.FOLDER / "README.md").read_text(encoding="utf-8")
    for word in {*reader.KINDS, *(expect.rpartition(" ")[2] for expect in EXPECTATIONS.values())}:
        assert f"`{word}`" in told or f" {word}`" in told, word


def reasons() -> set[str]:
    """Every reason that stands in the code of sealpipe.wire: each text there of words joined by hyphens."""
    return {reason for tree in code() for reason in reasons_in(tree)} - {"utf-8", "latin-1"}


def code() -> Iterator[ast.Module]:
    folder = Path(str(sealpipe.wire.__file__)).parent
    yield from (ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py"))


def reasons_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and (start := ast.unparse(node.values[0]).strip("'\"")) in SPELLED_OUT:
            yield from (start + name for name in SPELLED_OUT[start])
        elif isinstance(node, ast.Constant) and re.fullmatch("[a-z0-9]+(-[a-z0-9]+)+", str(node.value), re.ASCII):
            yield str(node.value)


def parts() -> set[str]:
    """The classes of refusals that sealpipe.wire raises, as the vectors write them."""
    imported = {
        name.name
        for tree in code()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "sealpipe.errors"
        for name in node.names
    }
    kinds = [error.__name__ for error in errors.WireError.__subclasses__()]
    return {kind.removesuffix("Error").lower() for kind in kinds if kind in imported}
