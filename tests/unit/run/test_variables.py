"""Which names the variables of a command may have, what may stand in a file of references, and what
both say.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import Note, UsageError
from sealpipe.reference import parse
from sealpipe.run.variables import Variable, make_environment, parse_variable, read_variables

MADE_UP = "canary-of-a-variable"


@pytest.mark.parametrize(
    "name", ["A", "_", "a_1", "DB_PASSWORD", "LDAP_URL", "PATHS", "ENVIRONMENT", "PYTHON_TOKEN"]
)
def test_a_name_may_be_used(name: str) -> None:
    assert parse_variable(f"{name}=env:X") == Variable(name, parse("env:X"))


@pytest.mark.parametrize(
    "name", ["", "1A", "A-B", "A B", "A.B", "é", "A\n", "A\0", "A'", "export A"]
)
def test_what_is_no_name_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_variable(f"{name}={MADE_UP}")
    assert MADE_UP not in str(raised.value) + raised.value.remedy
    assert raised.value.message == "the value is not NAME=REF"


@pytest.mark.parametrize("ref", [MADE_UP, "", f"'{MADE_UP}'", '"env:X"', f"/{MADE_UP}:x"])
def test_a_value_in_place_of_a_reference_is_not_shown(ref: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_variable(f"A={ref}")
    assert MADE_UP not in str(raised.value) + raised.value.remedy


@pytest.mark.parametrize("ref", ["vault:a#x,y", "vault:a#*", "vault:a#A=x,B=y"])
def test_a_reference_to_several_values_is_refused(ref: str) -> None:
    with pytest.raises(UsageError, match="A: the reference selects several values"):
        parse_variable(f"A={ref}")


@given(prefix=st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), key=st.text())
def test_whatever_a_key_is_its_variable_has_a_name_with_the_prefix(prefix: str, key: str) -> None:
    name = Variable(f"{prefix}*", parse("vault:a#*")).name_value(key).name
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    assert name.startswith(prefix)


def test_a_file_has_a_variable_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "refs.env"
    file.write_bytes(
        b"\xef\xbb\xbf# comment\r\n\r\n  A=env:X  \n\t#B=env:Y\nC=op://Vault/Item/a "
        b"b#k%23\n D=text:x#"
    )
    with pytest.raises(UsageError, match=f"{file}:6: text: item 1 of the selector is empty"):
        read_variables([], str(file))
    file.write_bytes(file.read_bytes().removesuffix(b"#"))
    found = read_variables(["Z=env:Z"], str(file))
    assert [(each.name, str(each.ref)) for each in found] == [
        ("Z", "env:Z"), ("A", "env:X"), ("C", "op:Vault/Item/a b#k#"), ("D", "text:x"),
    ]  # fmt: skip


def test_everything_that_is_wrong_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "refs.env"
    file.write_bytes(
        b"A=env:X\n"
        + MADE_UP.encode()
        + b"\nB=\xff"
        + MADE_UP.encode()
        + b"\nPATH=env:X\nA=env:X\n"
    )
    with pytest.raises(UsageError) as raised:
        read_variables(["A=env:X", f"C={MADE_UP}"], str(file))
    told = [raised.value.message, *Note.on(raised.value)]
    assert [line.partition(": ")[0] for line in told] == [
        "-e 2",
        *(f"{file}:{number}" for number in (1, 2, 3, 4, 5)),
    ]
    assert MADE_UP not in "".join(told) + raised.value.remedy


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"#" * 1_048_577)
    for name, reason in (
        ("large", "larger than 1 MiB"),
        ("missing", "No such file"),
        (".", "Is a directory"),
    ):
        with pytest.raises(UsageError, match=reason):
            read_variables([], str(tmp_path / name))


def test_nothing_given_is_an_error() -> None:
    with pytest.raises(UsageError, match="no variable is given"):
        read_variables([], None)


def test_the_environment_is_bytes_without_ours() -> None:
    odd = os.fsdecode(b"\xff\xfe")
    given = {
        "A": "old",
        "ODD": odd,
        "SEALPIPE_API_KEY": "x",
        "SEALPIPE": "stays",
        "sealpipe_x": "stays",
    }
    assert make_environment(given, {"A": b"new\n\xff", "B": b"b"}) == {
        b"A": b"new\n\xff", b"ODD": b"\xff\xfe", b"SEALPIPE": b"stays", b"sealpipe_x": b"stays",
        b"B": b"b",
    }  # fmt: skip
    with pytest.raises(UsageError, match="the value of B has a NUL byte"):
        make_environment({}, {"B": MADE_UP.encode() + b"\0"})
