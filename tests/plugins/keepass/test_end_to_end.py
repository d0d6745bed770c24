"""A secret from a KeePass database to a recipient, and from a submitter into one; what fails; what
shows anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.keepass.databases import PASSWORD, Databases
from sealpipe_rehearsal.running_service import RunningService
from support.hand_over import VALUE, HandOver
from support.killing import InProcess, Killer
from support.storing import another_machine, asked_at_once, job
from support.terminal import Terminal, opened

__all__ = ["job"]


@pytest.fixture
def team(tmp_path: Path) -> Databases:
    team = Databases(tmp_path)
    team.add("Servers/db", VALUE)
    return team


class TestKeepass(HandOver):
    """It is a file: neither value nor password is anywhere in clear."""

    reference = "keepass:Servers/db#Password"
    missing = "keepass:Servers/none#Password"
    target = "keepass:Vendors/acme#Password=staging_password,UserName=user"

    @pytest.fixture
    def login(self, team: Databases) -> Mapping[str, str]:
        self.team = team
        return team.environ()

    def secrets(self, login: Mapping[str, str]) -> Mapping[str, str]:
        del login
        return {"password": PASSWORD}

    def held(self) -> tuple[Mapping[str, str], object]:
        held = self.team.fields("Vendors/acme")
        values = {"password": held["Password"], "user": held["UserName"]}
        return values, self.team.file.read_bytes()


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
