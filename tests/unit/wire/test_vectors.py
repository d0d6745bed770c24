"""Every vector of tests/unit/wire/vectors/, in sealpipe and in WebCrypto: the same verdict, and the
one it expects.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import sealpipe.wire
from sealpipe import errors
from sealpipe.doctor import conformance
from support.parts import program
from unit.wire import make_conformance, make_vectors, reader

VECTORS = reader.vectors()
pytestmark = pytest.mark.filterwarnings("ignore:unknown field type")  # some have one on purpose
EXPECTATIONS = {name: vector["expect"] for name, vector in VECTORS.items()}
WEBCRYPTO = Path(__file__).with_name("vectors.mjs")
UNREACHABLE = {
    # Only what is no JSON can bring it about (bytes, a set, a key that is no text), and a vector is
    # text.
    "not-a-json-value",
}
SPELLED_OUT = {
    "bad-": ["key", "value", "type", "language", "filename"],
    "missing-": ["key", "value", "type"],
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector(name: str) -> None:
    assert reader.read(VECTORS[name]) == reader.expected(VECTORS[name])


def test_webcrypto_gives_the_same_verdict_on_every_vector() -> None:
    done = subprocess.run(
        [program("node"), str(WEBCRYPTO)], capture_output=True, text=True, timeout=120
    )
    theirs = {
        line["name"]: (line["verdict"], line["got"])
        for line in map(json.loads, done.stdout.rstrip("\n").split("\n"))
    }
    assert theirs == {name: reader.read(vector) for name, vector in VECTORS.items()}
    assert (done.returncode, done.stderr) == (0, "")


def test_webcrypto_says_so_where_a_vector_lies(tmp_path: Path) -> None:
    line = json.dumps(VECTORS["envelope_no-passcode"])
    lies = [
        line.replace('"expect": "success"', '"expect": "envelope wrong-key"'),
        line.replace("correct horse", "correct mouse"),
        line.replace('"result": {', '"result": {"payload": "", '),
    ]
    for told, code in [(line, 0), *((lie, 1) for lie in lies)]:
        (tmp_path / "envelope.jsonl").write_text(f"{told}\n", encoding="ascii")
        done = subprocess.run([program("node"), str(WEBCRYPTO), str(tmp_path)], timeout=60)
        assert done.returncode == code, told
    assert len({line, *lies}) == 4


def test_the_files_are_what_their_script_makes() -> None:
    assert make_vectors.files() == {
        path.name: path.read_bytes() for path in reader.FOLDER.glob("*.jsonl")
    }


def test_there_are_enough_and_four_in_five_must_be_refused() -> None:
    refused = [name for name, expect in EXPECTATIONS.items() if expect != "success"]
    assert len(VECTORS) >= 200
    assert len(refused) >= 0.8 * len(VECTORS)


def test_no_two_vectors_are_the_same() -> None:
    contents: dict[str, str] = {}
    for name, vector in VECTORS.items():
        inputs = json.dumps([vector["kind"], vector["given"]], sort_keys=True)
        assert contents.setdefault(inputs, name) == name


def test_every_kind_has_vectors_of_both_outcomes() -> None:
    outcomes = {(vector["kind"], vector["expect"] == "success") for vector in VECTORS.values()}
    assert outcomes == {(kind, good) for kind in reader.KINDS for good in (True, False)}


def test_every_part_and_every_reason_of_the_wire_format_is_some_vectors_expectation() -> None:
    named = {expect for expect in EXPECTATIONS.values() if expect != "success"}
    assert {expect.split(" ")[0] for expect in named} == parts() | {"usage"}
    unnamed = sorted(reasons() - {expect.rpartition(" ")[2] for expect in named})
    print("reasons that no vector names:", *unnamed)
    assert set(unnamed) == UNREACHABLE


def test_no_vector_names_a_reason_that_the_code_does_not_have() -> None:
    assert {expect.rpartition(" ")[2] for expect in EXPECTATIONS.values()} - reasons() == {
        "success",
        "usage",
    }


def test_the_readme_tells_of_every_kind_and_every_reason() -> None:
    told = (reader.FOLDER / "README.md").read_text(encoding="utf-8")
    for word in {*reader.KINDS, *(expect.rpartition(" ")[2] for expect in EXPECTATIONS.values())}:
        assert f"`{word}`" in told or f" {word}`" in told, word


def reasons() -> set[str]:
    """Every reason that stands in the code of sealpipe.wire: each text there of words joined by
    hyphens.
    """
    return {reason for tree in code() for reason in reasons_in(tree)} - {"utf-8", "latin-1"}


def code() -> Iterator[ast.Module]:
    folder = Path(str(sealpipe.wire.__file__)).parent
    yield from (ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py"))


def reasons_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.JoinedStr)
            and (start := ast.unparse(node.values[0]).strip("'\"")) in SPELLED_OUT
        ):
            yield from (start + name for name in SPELLED_OUT[start])
        elif isinstance(node, ast.Constant) and re.fullmatch(
            "[a-z0-9]+(-[a-z0-9]+)+", str(node.value), re.ASCII
        ):
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


def test_doctor_checks_a_choice_of_these() -> None:
    assert make_conformance.FILE.read_text(encoding="utf-8") == make_conformance.text()
    outcomes = {(each["kind"], each["expect"] == "success") for each in conformance.load_vectors()}
    assert outcomes == {
        (kind, good) for kind in {kind for kind, _ in outcomes} for good in (True, False)
    }
