"""Killed at one step after another: a rerun, here or elsewhere, ends with each submission stored once, none lost.

All steps, and all backends: tests/endurance/collect_sweep.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from cli.collect.sweep import Killed, Step, Sweep
from sealpipe_rehearsal.running_service import RunningService
from support.fake_github import FakeGitHub
from support.fake_web import drop_after
from support.job import Caller, Job
from support.openbao import Bao
from support.places import InDotenv, InFile, InGitHub, InVault
from support.storing import Asked, another_machine, asked_at_once
from support.strace import failing, only
from support.sweep import spread

CHANGING = ("write", "fsync", "linkat", "rename", "ftruncate", "flock", "sendto", "recvfrom", "exit_group")
"""The calls that change what is on disk, at the service or on stdout, and the last one of all."""


def swept(sweep: Sweep, steps: Sequence[Step], place: Path) -> list[Killed]:
    """What came of each, the reruns by turns on the same machine and on another; none broke the promise."""

    def kill(number: int) -> Killed:
        return replace(sweep, elsewhere=number % 2 == 1).kill_at(steps[number], place / str(number))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(kill, range(len(steps))))
    assert {f"{each.step}: {each.step.text[:60]}": each.wrong() for each in found if each.wrong()} == {}
    return found


@pytest.mark.parametrize("kind", [InFile, InDotenv], ids=["file", "dotenv"])
def test_at_a_system_call(kind: type[InFile | InDotenv], service: RunningService, tmp_path: Path) -> None:
    sweep = Sweep(service, lambda job: kind(job.terminal.here))
    found = swept(sweep, spread(only(sweep.points(tmp_path / "traced"), CHANGING), 8), tmp_path)
    assert [found[0].code, found[-1].code] == [-9, 0], "it went all the way to a command that outlives it"


def test_at_a_request_to_the_service_or_to_vault(service: RunningService, bao: Bao, tmp_path: Path) -> None:
    sweep = Sweep(service, lambda _: InVault(bao), number=1)
    calls = sweep.calls(tmp_path / "counted")
    assert {call.text.partition(":")[0] for call in calls[:-1]} == {"service", "vault"}
    # What only reads is alike before and after. What writes is killed on both sides of it.
    telling = [call for call in calls if not call.late or "GET" not in call.text]
    found = swept(sweep, spread(telling, 12), tmp_path)
    assert [found[0].code, found[-1].code] == [-9, 0]


def test_before_and_after_the_request_is_ended(service: RunningService, tmp_path: Path) -> None:
    sweep = Sweep(service, lambda job: InFile(job.terminal.here))
    before, after = (call for call in sweep.calls(tmp_path / "counted") if "DELETE" in call.text)
    found = swept(sweep, [before, before, after, after], tmp_path)
    # Who knows of a DELETE that may still be on its way sends no other for an hour; who does not finds it active.
    assert [each.reruns for each in found] == [[9, 0], [0], [0], [0]]


def test_where_nobody_can_read_back_it_is_stored_again_only_on_demand(
    service: RunningService, hub: FakeGitHub, tmp_path: Path
) -> None:
    sweep = Sweep(service, lambda _: InGitHub(hub))
    calls = sweep.calls(tmp_path / "counted")
    writes = [number for number, call in enumerate(calls) if call.late and "PUT" in call.text]
    last = max(number for number, call in enumerate(calls) if call.text.startswith("github-secret"))
    found = swept(sweep, [calls[number] for number in (writes[0], writes[1], last + 1)], tmp_path)
    assert [each.reruns for each in found] == [[14, 0], [14, 0], [0]]


# -- the ledger of places that nobody can read ---------------------------------------------------


@pytest.fixture
def repository(hub: FakeGitHub, job: Job) -> InGitHub:
    place = InGitHub(hub)
    job.terminal.environ |= place.environ()
    return place


@pytest.fixture
def cut_off(job: Job, repository: InGitHub, group: str) -> Asked:
    """Somebody's answer, of which a run that was cut off may have stored the first of two values."""
    request = asked_at_once(job)
    request.answer()
    repository.fake.instead = [None, None, None, drop_after]
    done = request.stores(*repository.single(group), code=14)
    assert repository.writes(group) == 1
    assert "GitHub did not say whether it stored" in done.err
    return request


def test_who_runs_it_again_is_told_what_may_be_and_what_to_do(cut_off: Asked, repository: InGitHub, group: str) -> None:
    done = cut_off.stores(*repository.single(group), more=("--after", "expire", "--output", "json"), code=14)
    assert "an earlier run was interrupted while it stored github-secret:acme/app#" in done.error["message"]
    assert "?mode=replace" in done.error["remedy"]
    assert repository.writes(group) == 1, "nothing was sent"
    assert not cut_off.is_over()


def test_replacing_stores_it_and_from_then_on_it_is_not_sent_again(
    cut_off: Asked, repository: InGitHub, group: str
) -> None:
    (target,) = repository.single(group)
    replacing = target.replace("#", "?mode=replace#")
    done = cut_off.stores(replacing, more=("--after", "expire"))
    assert done.out.endswith("\tstored, not read back\n")
    assert cut_off.is_over()
    before = repository.writes(group)
    for again in (target, replacing):
        assert cut_off.stores(again).out.endswith("\talready there\n")
    assert repository.writes(group) == before


def test_what_was_refused_may_be_tried_again(job: Job, repository: InGitHub, group: str) -> None:
    request = asked_at_once(job)
    given = request.answer()
    repository.fake.vaults.may_write = False
    request.stores(*repository.single(group), code=14)
    repository.fake.vaults.may_write = True
    request.stores(*repository.single(group))
    assert repository.there(group) == given.values()


def test_where_the_ledger_cannot_be_written_nothing_is_sent_and_other_places_get_theirs(
    job: Job, repository: InGitHub, group: str, tmp_path: Path
) -> None:
    request, files = asked_at_once(job), InFile(job.terminal.here)
    given = request.answer()
    targets = [*repository.single(group), *files.single(group)]
    done = request.stores(
        *targets, more=("--after", "expire"), code=2, under=failing("ftruncate", "ENOSPC", tmp_path / "log")
    )
    assert "cannot be written: No space left on device" in done.err
    assert (repository.there(group), files.there(group)) == ({}, given.values())
    assert not request.is_over()
    request.stores(*targets, more=("--after", "expire"))
    assert (repository.there(group), request.is_over()) == (given.values(), True)


def test_the_second_answer_is_not_taken_for_the_first(job: Job, repository: InGitHub, group: str) -> None:
    request = asked_at_once(job)
    request.answer()
    request.stores(*repository.single(group))
    newer = request.answer()
    request.stores(*repository.single(group), more=("--pick", newer.code), code=14)
    request.stores(*repository.single(group), more=("--pick", newer.code, "--mode", "replace"))
    assert repository.there(group) == newer.values()


def test_another_machine_has_another_ledger(cut_off: Asked, repository: InGitHub, group: str) -> None:
    done = cut_off.stores(*repository.single(group), code=14, **another_machine(cut_off.job))
    assert "exists already, and GitHub does not return its value" in done.err
    assert repository.writes(group) == 1


class TestInMemory:
    """A program that lets nothing be written to disk."""

    @pytest.fixture(autouse=True)
    def at_github(self, job: Job, repository: InGitHub, group: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in repository.environ().items():
            monkeypatch.setenv(name, value)
        self.request, self.place, self.group = asked_at_once(job), repository, group
        self.given = self.request.answer()
        self.to = list(repository.single(group))

    def test_what_is_stored_is_not_sent_again_by_this_process(self, call: Caller) -> None:
        first = call("collect", self.request.code, to=self._by_text())
        again = call("collect", self.request.code, to=self._by_text())
        assert [(row.already, row.known) for row in (*first.stored, *again.stored)] == [(False, False), (True, False)]
        assert (self.place.there(self.group), self.place.writes(self.group)) == (self.given.values(), 2)
        assert self.request.job.left() == []

    def test_what_may_be_stored_is_told_and_stored_on_demand(self, call: Caller) -> None:
        self.place.fake.instead = [None, None, None, drop_after]
        for said in ("GitHub did not say whether it stored", "an earlier run was interrupted while it stored"):
            failed = call("collect_each", [self.request.code], to=self._by_text())[0].problem()
            assert type(failed).__name__ == "UnknownOutcomeError"
            assert said in failed.message
        assert self.place.writes(self.group) == 1
        call("collect", self.request.code, to=self._by_text(), mode="replace")
        assert self.place.there(self.group) == self.given.values()

    def _by_text(self) -> list[str]:
        """The targets for a request without a receipt: its prompts by their texts."""
        return [
            target.replace("=staging_password", "=Staging password").replace("=user", "=User name")
            for target in self.to
        ]
