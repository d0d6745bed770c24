"""`sealpipe copy` from store to store: policies, the audit log, bytes, and what a rerun does."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from support.terminal import Terminal

ROTATE = (
    "copy",
    "Password=gen:password?symbols=0",
    "--mode",
    "replace",
    "--to",
    "dotenv:app.env#PW=Password",
    "--to",
    "file:out/password",
)


def read_password(bare: Terminal) -> str:
    return (bare.here / "app.env").read_text().strip().removeprefix("PW=")


def records(bare: Terminal) -> list[Path]:
    return [*Path(bare.environ["SEALPIPE_STATE_DIR"]).glob("copies/*")]


@pytest.fixture(autouse=True)
def _state_directory(bare: Terminal) -> None:
    bare.environ["SEALPIPE_STATE_DIR"] = str(bare.here / "state")


def test_a_new_password_is_the_same_everywhere_and_another_the_next_time(bare: Terminal) -> None:
    (bare.here / "out").mkdir()
    assert bare.sealpipe(*ROTATE).code == 0
    first = read_password(bare)
    assert (bare.here / "out/password").read_text() == first
    assert records(bare) == []
    assert bare.sealpipe(*ROTATE).code == 0
    assert (bare.here / "out/password").read_text() == read_password(bare) != first


def test_a_rerun_writes_what_is_missing_with_the_value_of_the_first(bare: Terminal) -> None:
    failed = bare.sealpipe(*ROTATE)
    assert failed.code == 14
    assert "written: dotenv:app.env#PW" in failed.err
    assert "not written: file:out/password" in failed.err
    password = read_password(bare)
    (record,) = records(bare)
    assert password not in record.read_text()
    assert record.stat().st_mode & 0o777 == 0o600
    (bare.here / "out").mkdir()
    done = bare.sealpipe(*ROTATE)
    assert (done.code, done.out) == (
        0,
        "dotenv:app.env#PW\talready there\nfile:out/password\tstored\n",
    )
    assert done.err == (
        "no new value was made: an earlier run of this copy had stored one in dotenv:app.env#PW\n"
    )
    assert (bare.here / "out/password").read_text() == read_password(bare) == password
    assert records(bare) == []


def test_bytes_are_copied_as_they_are(bare: Terminal) -> None:
    data = bytes(range(256))
    (bare.here / "key.p12").write_bytes(data)
    assert bare.sealpipe("copy", "file:key.p12", "--to", "file:copy.p12").code == 0
    assert (bare.here / "copy.p12").read_bytes() == data


def test_bytes_for_a_store_of_text_are_refused_before_anything_is_written(bare: Terminal) -> None:
    (bare.here / "key.p12").write_bytes(bytes(range(256)))
    words = ("--to", "file:copy.p12", "--to", "dotenv:x#KEYSTORE=key.p12")
    done = bare.sealpipe("copy", "file:key.p12", *words)
    assert done.code == 14
    assert "dotenv:x: dotenv stores only text, and the value for KEYSTORE is not UTF-8" in done.err
    assert "add ?encode=base64 to its source" in done.err
    assert [each.name for each in bare.here.iterdir() if each.is_file()] == ["key.p12"]
    words = ("--to", "file:copy.p12?decode=base64", "--to", "dotenv:x#KEYSTORE=key.p12")
    assert bare.sealpipe("copy", "file:key.p12?encode=base64", *words).code == 0
    assert (bare.here / "copy.p12").read_bytes() == bytes(range(256))
    shown = bare.sealpipe("read", "dotenv:x?decode=base64&encode=hex#KEYSTORE")
    assert shown.out.strip() == bytes(range(256)).hex()
    refused = bare.sealpipe("copy", "file:key.p12", "--to", "dotenv:y?decode=hex#K=key.p12")
    assert refused.code == 2


def test_policy_and_audit_see_names_and_no_value(bare: Terminal) -> None:
    bare.environ["SEALPIPE_CONFIG"] = str(
        bare.file(
            "config.toml",
            f'[policy]\nactions = ["copy"]\nsinks = ["file"]\n'
            f'[audit]\nfile = "{bare.here}/audit.jsonl"\n',
        )
    )
    bare.file("a.env", "TOKEN=canary-of-a-copy\n")
    assert bare.sealpipe("copy", "dotenv:a.env#TOKEN", "--to", "file:token").code == 0
    log = (bare.here / "audit.jsonl").read_text()
    assert "canary-of-a-copy" not in log
    began, ended = map(json.loads, log.splitlines())
    seen = {
        "event": "copy",
        "labels": ["TOKEN"],
        "sources": ["dotenv/dotenv"],
        "sinks": ["file/file"],
    }
    assert began.items() >= {**seen, "outcome": "begun"}.items()
    assert ended.items() >= {**seen, "outcome": "done"}.items()
    refused = bare.sealpipe("copy", "dotenv:a.env#TOKEN", "--to", "dotenv:b.env#TOKEN")
    assert refused.code == 2
    assert "is not allowed" in refused.err
    assert not (bare.here / "b.env").exists()


def test_a_policy_of_sources_has_to_allow_the_store_that_a_rerun_would_read(
    bare: Terminal,
) -> None:
    """Else a rerun, or a made-up record of one, could hand on what that store has."""
    (bare.here / "out").mkdir()
    config = bare.file("config.toml", '[policy]\nsources = ["gen"]\n')
    refused = bare.sealpipe(*ROTATE, SEALPIPE_CONFIG=str(config))
    assert refused.code == 2
    assert "dotenv" in refused.err
    assert [*(bare.here / "out").iterdir()] == []
    bare.file("config.toml", '[policy]\nsources = ["gen", "dotenv"]\n')
    assert bare.sealpipe(*ROTATE, SEALPIPE_CONFIG=str(config)).code == 0


def test_the_credential_is_not_copied(user: Terminal) -> None:
    user.file("key", user.environ["SEALPIPE_API_KEY"])
    done = user.sealpipe("copy", "file:key", "--to", "file:copied")
    assert done.code == 2
    assert "sealpipe's own credential" in done.err
    assert not (user.here / "copied").exists()


def test_a_new_value_needs_a_store_that_can_be_read(bare: Terminal) -> None:
    (bare.here / "values").mkdir()
    done = bare.sealpipe("copy", "gen:password", "--to", "dir:values#password")
    assert done.code == 2
    assert "can be read back" in done.err
    assert [*(bare.here / "values").iterdir()] == []


def test_what_no_target_takes_of_a_new_key_pair_needs_no_store(bare: Terminal) -> None:
    done = bare.sealpipe("copy", "gen:ssh#*", "--to", "file:id#private")
    assert done.code == 0, done
    assert (bare.here / "id").read_text().startswith("-----BEGIN OPENSSH PRIVATE KEY-----")


def test_the_halves_of_a_new_key_pair_need_one_store_that_has_both(bare: Terminal) -> None:
    """Else a rerun could take one of the first pair, and the other of a second one."""
    to = ("--to", "file:id#private", "--to", "file:id.pub#public")
    done = bare.sealpipe("copy", "gen:ssh#private,public", *to)
    assert done.code == 2
    assert "no target of private and public can be read back together" in done.err
    assert not (bare.here / "id").exists()


@pytest.mark.parametrize("encoding", ["base64", "base64url", "hex"])
@pytest.mark.parametrize("more", range(3))
def test_no_target_decodes_the_credential(user: Terminal, encoding: str, more: int) -> None:
    user.file("conf", "setting = 1\n" * 90 + "x" * more + user.environ["SEALPIPE_API_KEY"])
    words = (f"file:conf?encode={encoding}", "--to", f"file:out?decode={encoding}")
    done = user.sealpipe("copy", *words)
    assert (done.code, (user.here / "out").exists()) == (2, False), done
    done = user.sealpipe("share", words[0])
    assert done.code == 2, done
    assert "sealpipe's own credential" in done.err


def test_no_target_decodes_the_credential_out_of_lines(user: Terminal) -> None:
    settings = "setting = 1\n" * 90
    user.file("conf", base64.encodebytes((settings + user.environ["SEALPIPE_API_KEY"]).encode()))
    for verb, to in (("copy", "--to"), ("share", "--also-to")):
        done = user.sealpipe(verb, "file:conf", to, "file:out?decode=base64")
        assert (done.code, (user.here / "out").exists()) == (2, False), done
        assert "sealpipe's own credential" in done.err


def test_the_audit_of_a_rerun_names_the_store_that_the_value_was_taken_from(bare: Terminal) -> None:
    config = bare.file("config.toml", f'[audit]\nfile = "{bare.here}/audit.jsonl"\n')
    bare.environ["SEALPIPE_CONFIG"] = str(config)
    assert bare.sealpipe(*ROTATE).code == 14
    (bare.here / "out").mkdir()
    assert bare.sealpipe(*ROTATE).code == 0
    assert bare.sealpipe(*ROTATE).code == 0
    lines = [json.loads(line) for line in (bare.here / "audit.jsonl").read_text().splitlines()]
    ended = [line for line in lines if line["outcome"] == "done"]
    assert [line.get("resumed", False) for line in ended] == [True, False]
    assert [line["sources"] for line in ended] == [["gen/gen", "dotenv/dotenv"], ["gen/gen"]]
