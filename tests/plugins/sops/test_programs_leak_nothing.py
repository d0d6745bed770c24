"""`sealpipe share` with sources that start programs, end to end, and seen from outside."""

from __future__ import annotations

import json

import pytest

from plugins.sops.age import Encrypt, Keys, encrypt, keys
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.leaks import Detector
from support.strace import watch
from support.terminal import Terminal, opened

__all__ = ["encrypt", "keys"]

VALUES = {"Password": "Canary-sops-5d0c77a1e2", "Token": "Canary-exec-b91f03c4d8"}


@pytest.fixture
def filled(user: Terminal, encrypt: Encrypt, keys: Keys) -> Terminal:
    """A user with an encrypted file, and a command in the config file."""
    path = encrypt("secrets.enc.yaml", f"db:\n  password: {VALUES['Password']}\n")
    path.rename(user.here / path.name)
    user.environ["SOPS_AGE_KEY_FILE"] = str(keys.file)
    user.file("token", VALUES["Token"])
    (user.home / ".config/sealpipe").mkdir(parents=True)
    config = user.home / ".config/sealpipe/config.toml"
    config.write_text('[plugins.exec.commands.token]\nargv = ["cat", "{arg}"]\n')
    return user


SHARE = [
    "share",
    "-f",
    "Password=sops:secrets.enc.yaml#/db/password",
    "-f",
    "Token=exec:token?arg=token",
]


def test_what_programs_give_is_shared(filled: Terminal, service: RunningService) -> None:
    done = filled.sealpipe(*SHARE)
    assert done.code == 0, done
    assert opened(service, done.out.strip()) == VALUES


def test_no_child_is_given_anything_that_is_secret(filled: Terminal) -> None:
    watched = watch(filled, [*SEALPIPE, *SHARE])
    assert watched.done.code == 0, watched.done
    started = [argv[0].rpartition(b"/")[2] for argv in watched.executed]
    assert b"sops" in started
    assert b"cat" in started
    credential = filled.environ["SEALPIPE_API_KEY"].encode()
    secrets = {name: value.encode() for name, value in VALUES.items()} | {"credential": credential}
    words = b"\n".join(word for call, word in watched.words)
    assert b"decrypt" in words  # the programs' argv is among them
    assert str(filled.environ["SOPS_AGE_KEY_FILE"]).encode() in words  # and their environment
    assert Detector(secrets).find(words) == set()
    assert b"SEALPIPE_" not in words
    for place, content in watched.left.items():
        assert Detector(secrets).find(content, place) == set()


def test_a_failure_names_the_reference_the_reason_and_the_next_step(filled: Terminal) -> None:
    told = filled.sealpipe("share", "-f", "Password=sops:none.yaml#a")
    assert told.code == 14
    assert "sops:none.yaml does not exist" in told.err
    del filled.environ["SOPS_AGE_KEY_FILE"]
    told = filled.sealpipe(*SHARE[:3], "--output", "json")
    assert (told.code, told.error["type"], told.error["reference"]) == (
        14,
        "NotConfiguredError",
        "sops:secrets.enc.yaml",
    )
    assert "SOPS_AGE_KEY_FILE" in told.error["remedy"]
    told = filled.sealpipe("share", "-f", "Token=exec:token?arg=-n")
    assert told.code == 2
    assert "begins with a dash" in told.err
    assert "reference: exec:token?arg=-n" in told.err


def test_the_plugins_are_listed_with_their_parameters(filled: Terminal) -> None:
    rows = {
        row["name"]: row for row in filled.sealpipe("plugins", "--output", "json").json["plugins"]
    }
    assert {"sops", "pass", "exec", "keyring", "op"} <= rows.keys()
    assert set(rows["sops"]["params"]) == {"input", "raw"}
    assert json.dumps(rows["keyring"]["needs"]) == '["keyring>=25"]'
