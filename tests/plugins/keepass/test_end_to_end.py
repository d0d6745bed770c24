"""A secret from a KeePass database to a recipient, and from a submitter into one; what fails; what
shows anywhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.keepass.databases import PASSWORD, Databases, P
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.failures import Failure, assert_told_apart, without
from support.job import Job
from support.killing import InProcess, Killer
from support.leaks import Detector
from support.storing import another_machine, asked_at_once, job
from support.strace import watch
from support.terminal import Terminal, opened

__all__ = ["job"]

VALUE = "canary-in-an-entry-5f1e"
SHARE = ["share", "-f", "Root=keepass:Servers/db#Password"]


@pytest.fixture
def team(user: Terminal) -> Databases:
    team = Databases(user.home)
    team.add("Servers/db", VALUE)
    return team


def test_one_line_hands_a_secret_over(
    team: Databases, user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe(*SHARE, **team.environ())
    assert done.code == 0, done
    assert opened(service, done.out) == {"Root": VALUE}


def test_each_named_store_is_a_database(
    team: Databases, user: Terminal, service: RunningService
) -> None:
    other = Databases(user.home, "other.kdbx")
    other.add("db", "of the other")
    stores = "".join(
        f'[stores.{name}]\nplugin = "keepass"\ndatabase = "{each.file}"\n'
        for name, each in {"ours": team, "theirs": other}.items()
    )
    settings = {"SEALPIPE_CONFIG": str(user.file("config.toml", stores))}
    settings |= {f"SEALPIPE_STORE__{name}__PASSWORD": PASSWORD for name in ("OURS", "THEIRS")}
    words = ("-f", "A=ours:Servers/db#password", "-f", "B=theirs:db#password")
    done = user.sealpipe("share", *words, **settings)
    assert done.code == 0, done
    assert opened(service, done.out) == {"A": VALUE, "B": "of the other"}
    told = user.sealpipe("doctor", "ours", **settings)
    assert "the database opens (KDBX 4.0)" in told.out, told


def test_a_submission_is_stored_once_on_every_machine(job: Job) -> None:
    team, request = Databases(job.terminal.home), asked_at_once(job)
    given = request.answer()
    target = "keepass:Vendors/acme#Password=staging_password,UserName=user"
    request.stores(target, **team.environ())
    stored = dict(team.fields("Vendors/acme"))
    assert given.code in stored.pop("sealpipe")
    assert stored == {"Password": given.password, "UserName": given.user}
    before = team.file.read_bytes()
    request.stores(target, **team.environ(), **another_machine(job))
    assert team.file.read_bytes() == before


def test_what_fails_is_told_apart(team: Databases, user: Terminal, service: RunningService) -> None:
    """No proxy, no certificate and no timeout: it is a file.

    What else may be wrong with one is here.
    """
    ours, whole = team.environ(), team.file.read_bytes()
    cut, other = user.file("cut.kdbx", whole[:-20]), user.file("other.kdbx", "of a spreadsheet")
    failures = {
        "wrong path": Failure("keepass:Servers/none#Password", ours),
        "no such field": Failure("keepass:Servers/db#pin", ours),
        "wrong password": Failure("keepass:Servers/db#Password", {**ours, f"{P}PASSWORD": "wrong"}),
        "no password": Failure("keepass:Servers/db#Password", {**ours, f"{P}PASSWORD": ""}),
        "no key file": Failure("keepass:Servers/db#Password", {**ours, f"{P}KEY_FILE": "none"}),
        "no database": Failure("keepass:Servers/db#Password", {**ours, f"{P}DATABASE": "none"}),
        "damaged": Failure("keepass:Servers/db#Password", {**ours, f"{P}DATABASE": str(cut)}),
        "another file": Failure(
            "keepass:Servers/db#Password", {**ours, f"{P}DATABASE": str(other)}
        ),
        "missing library": Failure(
            "keepass:Servers/db#Password", {**ours, **without(user, "pykeepass", "pykeepass")}
        ),
    }
    assert_told_apart(failures, user, service, secrets={PASSWORD, VALUE})


@pytest.mark.parametrize("password", [PASSWORD, "Canary-that-is-wrong"])
def test_neither_password_nor_value_shows(password: str, team: Databases, user: Terminal) -> None:
    environ = {**team.environ(), f"{P}PASSWORD": password}
    seen = watch(user, [*SEALPIPE, *SHARE, "--output", "json"], environ=environ)
    assert seen.done.code == (0 if password == PASSWORD else 14), seen.done
    detector = Detector({"value": VALUE.encode(), "password": password.encode()})
    assert {found for place, data in seen.places() for found in detector.find(data, place)} == set()
    assert seen.executed == []


def test_no_file_has_what_is_collected_in_clear(job: Job) -> None:
    team, request = Databases(job.terminal.home), asked_at_once(job)
    given = request.answer()
    job.terminal.environ |= team.environ()
    seen = watch(
        job.terminal, [*SEALPIPE, *request.words("keepass:Vendors/acme#Password=staging_password")]
    )
    assert seen.done.code == 0, seen.done
    detector = Detector({"value": given.password.encode(), "password": PASSWORD.encode()})
    assert {found for place, data in seen.places() for found in detector.find(data, place)} == set()
    assert seen.executed == []


def test_killed_at_any_step_no_entry_is_lost(service: RunningService, tmp_path: Path) -> None:
    job = InProcess(tmp_path, service)
    team, request = Databases(job.terminal.home), asked_at_once(job)
    team.add("Vendors/acme", "old", username="app")
    team.add("Servers/db", VALUE)
    given, before = request.answer(), team.file.read_bytes()
    words = request.words("keepass:Vendors/acme?mode=merge#Password=staging_password")
    job.terminal.environ |= team.environ()
    points = job.steps(
        tmp_path, lambda killer: job.run(*words, under=killer, **another_machine(job))
    )
    assert len(points) > 5
    for point in points:
        team.file.write_bytes(before)
        machine = another_machine(job)
        job.run(*words, under=Killer(point), **machine)
        assert team.fields("Servers/db") == {"Password": VALUE}
        assert team.fields("Vendors/acme")["Password"] in ("old", given.password)
        done = job.run(*words, **machine)
        assert done.code == 0, (point, done)
        entry = team.entry("Vendors/acme")
        assert (entry.password, entry.username, len(entry.history)) == (given.password, "app", 1), (
            point
        )
