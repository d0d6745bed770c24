"""What goes wrong with a KeePass database, and how each is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.keepass.databases import PASSWORD, Databases, P
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.testing.contract import CANARY
from support.damage import flipped
from support.failures import Row, Table

WRONG = "Canary-that-is-wrong"


def database(file: str) -> dict[str, str]:
    return {f"{P}DATABASE": file}


def holds(kind: type[PluginError], words: str, body: str = "a", **values: str | bytes) -> Row:
    """A value that is not stored."""
    return Row(kind, words, body, put={key.replace("_", ""): values[key] for key in values})


APART = {
    "no entry": Row(SecretNotFoundError, "is not in the database", "Servers/none"),
    "two entries": Row(ReferenceValueError, "names 2 entries", "Servers/two"),
    "wrong password": Row(
        BackendAuthError, "does not open its database", environ={f"{P}PASSWORD": WRONG}
    ),
    "no password": Row(
        NotConfiguredError, "neither a password nor a key file", environ={f"{P}PASSWORD": ""}
    ),
    "no key file": Row(
        NotConfiguredError, "key_file of keepass cannot be read", environ={f"{P}KEY_FILE": "none"}
    ),
    "no database": Row(
        NotConfiguredError, "database of keepass cannot be read", environ=database("none")
    ),
    "cut off": Row(PluginError, "is damaged", environ=database("cut.kdbx")),
    "another file": Row(PluginError, "is not a KeePass database", environ=database("text.kdbx")),
}
MORE = {
    **{
        f"the entry {body}": Row(SecretNotFoundError, "is not in the database", body)
        for body in ("Servers", "db", "servers/db")
    },
    "a changed byte": Row(PluginError, "is damaged", environ=database("flipped.kdbx")),
    "an older format": Row(PluginError, "is not a KeePass database", environ=database("old.kdb")),
    "an empty file": Row(PluginError, "is not a KeePass database", environ=database("empty.kdbx")),
    "a reference to nothing": Row(
        PluginError, "refers to an entry that does not exist", "Servers/alias"
    ),
    "no name": holds(ReferenceValueError, "names no entry", "", Password="1"),
    "no name between": holds(ReferenceValueError, "names no entry", "a//b", Password="1"),
    "the title": holds(ReferenceValueError, "no value can be stored as 'Title'", title="1"),
    "the marker": holds(ReferenceValueError, "no value can be stored as 'sealpipe'", sealpipe="1"),
    "a key of no text": Row(
        ReferenceValueError, "no value can be stored as", "a", put={"x\x01": "1"}
    ),
    "a field twice": holds(ReferenceValueError, "named twice", password="1", Password="2"),
    "no text": holds(UnsupportedError, "holds text only", _=b"\xff"),
    "a control character": holds(UnsupportedError, "Password holds text only", _="bell\x07"),
    "a link": Row(
        WriteConflictError, "is a symbolic link", "x", database("link.kdbx"), put={"": CANARY}
    ),
    "no database to write in": Row(
        NotConfiguredError, "does not exist", "x", database("none"), put={"": CANARY}
    ),
}
ROWS = {**APART, **MORE}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Databases:
    monkeypatch.chdir(tmp_path)
    team = Databases(tmp_path)
    team.add("Servers/db", CANARY)
    team.add("Servers/two", "1")
    team.add("Servers/two", "2")
    team.add("Servers/alias", "{REF:P@I:00000000000000000000000000000000}")
    whole = team.file.read_bytes()
    for name, content in {
        "cut.kdbx": whole[:-20],
        "flipped.kdbx": flipped(whole, 200),
        "text.kdbx": b"of a spreadsheet",
        "old.kdb": b"\x03\xd9\xa2\x9a\x65\xfb\x4b\xb5" + whole[8:],
        "empty.kdbx": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link.kdbx").symlink_to(team.file)
    return team


@pytest.fixture
def table(team: Databases) -> Table:
    return Table("keepass", "Servers/db", team.environ(), secrets=(PASSWORD, WRONG))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, team: Databases, table: Table) -> None:
    before = team.file.read_bytes()
    table.tell(ROWS[name])
    assert team.file.read_bytes() == before


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)
