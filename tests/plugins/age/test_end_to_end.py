"""A secret from a file of age to a recipient, and from a submitter into one; what fails; what shows
anywhere.
"""

from __future__ import annotations

from pathlib import Path

import pyrage
import pytest
from pyrage import x25519

from plugins.age.keys import PASSWORD, Keys, age, ssh_key
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnsupportedError,
)
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.failures import Row, Table
from support.job import Job
from support.killing import InProcess, Killer
from support.leaks import Detector
from support.storing import another_machine, asked_at_once, job
from support.strace import watch
from support.terminal import Terminal, opened

__all__ = ["job"]


@pytest.fixture
def keys(user: Terminal) -> Keys:
    keys = Keys(user.home)
    user.file("token.age", age("-r", keys.recipient, given=PASSWORD.encode()))
    return keys


SHARE = ["share", "-f", "Password=age:token.age"]


def test_one_line_hands_a_secret_over(keys: Keys, user: Terminal, service: RunningService) -> None:
    done = user.sealpipe(*SHARE, **keys.environ())
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_a_named_store_has_an_identity_of_its_own(
    keys: Keys, user: Terminal, service: RunningService
) -> None:
    config = user.file(
        "config.toml", f'[stores.team]\nplugin = "age"\nidentity_file = "{keys.file}"\n'
    )
    settings = {
        "SEALPIPE_CONFIG": str(config),
        "SEALPIPE_PLUGIN_AGE__IDENTITY": "none of this store",
    }
    done = user.sealpipe("share", "-f", "Password=team:token.age", **settings)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}
    told = user.sealpipe("doctor", "team", **settings)
    assert "identities: 1" in told.out, told


def test_a_submission_is_stored_by_a_machine_that_cannot_read_it(job: Job) -> None:
    keys, request = Keys(job.terminal.home), asked_at_once(job)
    given = request.answer()
    targets = ("age:new.age#staging_password", "age:user.age?armor=1#user")
    request.stores(*targets, **keys.writing())
    names = {"new.age": "password", "user.age": "user"}
    read = {
        key: age("-d", "-i", keys.file, job.terminal.here / name) for name, key in names.items()
    }
    assert read == given.values()
    done = request.stores(*targets, **keys.writing())  # the ledger knows
    assert "already there" in done.err + done.out, done


def test_what_fails_is_told_apart(
    keys: Keys, user: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No proxy, no certificate, no timeout and no login: these are files.

    What else may be wrong with one is here.
    """
    monkeypatch.chdir(user.here)
    others, whole = Keys(user.home, "theirs"), (user.here / "token.age").read_bytes()
    user.file("clear.txt", "x")
    user.file("cut.age", whole[:-1])
    user.file("newer.age", whole.replace(b"/v1", b"/v2", 1))
    user.file("words.age", b"age-encryption.org/v1\n-> scrypt wybSKgCbT7HxsFrJ0aOJKw 18\nxx\n")
    (user.here / "folder.age").mkdir()
    locked = str(ssh_key(user.home, "ed25519", "some words"))
    identity = dict.fromkeys(keys.environ(), "")
    file = "SEALPIPE_PLUGIN_AGE__IDENTITY_FILE"
    rows = {
        "wrong path": Row(SecretNotFoundError, "does not exist", "none.age"),
        "a folder": Row(PluginError, "is a directory", "folder.age"),
        "not encrypted": Row(PluginError, "is not encrypted by age", "clear.txt"),
        "for other keys": Row(AccessDeniedError, "is encrypted for keys", environ=others.environ()),
        "a passphrase": Row(UnsupportedError, "encrypted with a passphrase", "words.age"),
        "cut off": Row(PluginError, "is damaged, or cut off", "cut.age"),
        "a newer format": Row(UnsupportedError, "has a newer format of age", "newer.age"),
        "no identity": Row(NotConfiguredError, "has no identity", environ=identity),
        "no identity file": Row(
            NotConfiguredError, "cannot be read", environ={**identity, file: "none"}
        ),
        "a locked identity": Row(
            NotConfiguredError, "a passphrase", environ={**identity, file: locked}
        ),
    }
    secrets = (keys.private, others.private, PASSWORD)
    Table("age", "token.age", keys.environ(), secrets=secrets).tell_apart(rows)


@pytest.mark.parametrize("name", ["token.age", "none.age"])
def test_neither_key_nor_value_shows(name: str, keys: Keys, user: Terminal) -> None:
    environ = {"SEALPIPE_PLUGIN_AGE__IDENTITY": keys.private}
    seen = watch(
        user,
        [*SEALPIPE, "share", "-f", f"Password=age:{name}", "--output", "json"],
        environ=environ,
    )
    assert seen.done.code == (0 if name == "token.age" else 14), seen.done
    detector = Detector({"value": PASSWORD.encode(), "key": keys.private.encode()})
    assert {found for place, data in seen.places() for found in detector.find(data, place)} == set()
    assert seen.executed == []


def test_no_file_has_what_is_collected_in_clear(job: Job) -> None:
    keys, request = Keys(job.terminal.home), asked_at_once(job)
    given = request.answer()
    job.terminal.environ |= keys.environ()
    seen = watch(job.terminal, [*SEALPIPE, *request.words("age:new.age#staging_password")])
    assert seen.done.code == 0, seen.done
    detector = Detector({"value": given.password.encode(), "key": keys.private.encode()})
    places = [each for each in seen.places() if str(keys.file.name) not in each[0]]
    assert {found for place, data in places for found in detector.find(data, place)} == set()
    assert seen.executed == []


def test_killed_at_any_step_a_file_is_whole_or_not_there(
    service: RunningService, tmp_path: Path
) -> None:
    job = InProcess(tmp_path, service)
    keys, request = Keys(job.terminal.home), asked_at_once(job)
    given, file = request.answer(), job.terminal.here / "new.age"
    words = request.words("age:new.age?mode=replace#staging_password")
    job.terminal.environ |= keys.writing()
    identity = x25519.Identity.from_str(keys.private)
    points = job.steps(
        tmp_path, lambda killer: job.run(*words, under=killer, **another_machine(job))
    )
    assert len(points) > 5
    for point in points:
        file.unlink(missing_ok=True)
        machine = another_machine(job)
        job.run(*words, under=Killer(point), **machine)
        assert (
            not file.exists()
            or pyrage.decrypt(file.read_bytes(), [identity]) == given.password.encode()
        )
        done = job.run(*words, **machine)
        assert done.code == 0, (point, done)
        assert pyrage.decrypt(file.read_bytes(), [identity]) == given.password.encode()
