"""What a newer sealpipe wrote is refused by its schema, and stays as it is: no command reads,
changes or removes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sealpipe.batch.engine.plan import read_plan
from sealpipe.errors import SealpipeError
from sealpipe.mcp import call_limit
from sealpipe.mcp.tool_policy_file import load_policy
from sealpipe.state.copies import open_copy_record
from sealpipe.state.creations import Creation, find_creation, list_creations, note_creation
from sealpipe.state.ledger import open_ledger
from sealpipe.state.receipt import read_receipt, read_share_receipt
from support.terminal import Terminal

NEW = {"schema": 2, "kind": "request", "added": {"later": True}}
BASE_URL, CODE = "https://api.example/v1", "AbCdEf123456"

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a request's receipt": ("receipt.json", read_receipt),
    "a share's receipt": ("receipt.json", read_share_receipt),
    "an approved plan": ("plan.json", read_plan),
    "what an assistant's call made": (
        "AbC.json",
        lambda path: list_creations(path.parent, None, is_strict=True),
    ),
    "the calls of an hour": (
        "hourly.json",
        lambda path: call_limit.count_left(path.parent, "share_secret", 5),
    ),
    "the record of a copy": ("abc.jsonl", lambda path: open_copy_record(path.parent, "abc")),
    "a policy for assistants": ("policy.toml", lambda path: load_policy(path, {})),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_newer_file_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    name, read = READERS[kind]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        "schema = 2\nlater = true\n" if name.endswith(".toml") else json.dumps(NEW) + "\n"
    )
    file.chmod(0o600)
    before = file.read_bytes()
    with pytest.raises(
        SealpipeError, match="was written by a newer sealpipe: its schema is 2"
    ) as refused:
        read(file)
    assert (refused.value.exit_code, refused.value.remedy) == (
        2,
        "install that version, or a later one; nothing was changed",
    )
    assert ([file], before) == (list(file.parent.iterdir()), file.read_bytes())


def test_a_policy_whose_schema_is_too_long_to_print_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f"schema = 0x{'f' * 5000}\n")
    file.chmod(0o600)
    with pytest.raises(SealpipeError, match="schema is not 1"):
        load_policy(file, {})


def test_a_newer_ledger_is_refused_and_stays(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, BASE_URL, CODE)
    assert ledger is not None
    ledger.note_purge()
    ledger.close()
    (file,) = tmp_path.glob("*.jsonl")
    newer = file.read_bytes().replace(b'"schema":1', b'"schema":2')
    file.write_bytes(newer)
    for _ in range(2):
        with pytest.raises(SealpipeError, match="was written by a newer sealpipe: its schema is 2"):
            open_ledger(tmp_path, BASE_URL, CODE)
    assert file.read_bytes() == newer


def test_what_is_known_of_a_newer_creation_is_left_out_and_stays(tmp_path: Path) -> None:
    creation = Creation("request", BASE_URL, CODE, created_at=datetime(2026, 11, 23, tzinfo=UTC))
    note_creation(tmp_path, creation)
    (file,) = tmp_path.iterdir()
    newer = file.read_bytes().replace(b'"schema":1', b'"schema":2')
    file.write_bytes(newer)
    assert find_creation(tmp_path, BASE_URL, "request", CODE) is None
    note_creation(tmp_path, creation)
    assert file.read_bytes() == newer


def test_a_newer_entry_of_the_outbox_is_refused_and_stays(user: Terminal) -> None:
    assert user.run(["sh", "-c", "exec sealpipe share -f text:canary >&-"]).code == 11
    (file,) = user.outbox()
    newer = file.read_bytes().replace(b'"schema":1', b'"schema":2', 1)
    file.write_bytes(newer)
    for words in (("resume",), ("resume", file.stem), ("resume", file.stem, "--discard")):
        done = user.sealpipe(*words)
        assert done.code == 2, done
        assert (
            f"outbox entry {file.stem} was written by a newer sealpipe: its schema is 2" in done.err
        )
        assert "install that version" in done.err
        assert "--discard" not in done.err
        assert file.read_bytes() == newer
    assert (
        f"{file.stem}\tunreadable: it was written by a newer sealpipe"
        in user.sealpipe("resume", "--list").out
    )
    assert file.read_bytes() == newer


def test_a_damaged_entry_of_the_outbox_can_be_discarded(user: Terminal) -> None:
    file = user.file(
        str(user.home / ".local/state/sealpipe/outbox/0123456789ab.sealed"), "no first line of ours"
    )
    for folder in (file.parent, file.parent.parent):
        folder.chmod(0o700)
    assert user.sealpipe("resume", file.stem, "--discard").code == 0
    assert user.outbox() == []
