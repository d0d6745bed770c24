"""The ledger of places that nobody can read: what an interrupted run may have stored is stored
again only on demand.

Collecting that is killed: tests/cli/kills.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fake_github import FakeGitHub, InGitHub
from support.fake_web import drop_after
from support.job import Caller, Job
from support.places import InFile
from support.storing import Asked, another_machine, asked_at_once
from support.strace import failing


@pytest.fixture
def repository(hub: FakeGitHub, job: Job) -> InGitHub:
    place = InGitHub(hub)
    job.terminal.environ |= place.environ()
    return place


@pytest.fixture
def cut_off(job: Job, repository: InGitHub, group: str) -> Asked:
    """Somebody's answer, of which a run that was cut off may have stored the first of two
    values.
    """
    request = asked_at_once(job)
    request.answer()
    repository.fake.instead = [None, None, None, drop_after]
    done = request.stores(*repository.single(group), code=14)
    assert repository.writes(group) == 1
    assert "GitHub did not say whether it stored" in done.err
    return request


def test_a_second_run_reports_the_unknown_outcome_and_a_remedy(
    cut_off: Asked, repository: InGitHub, group: str
) -> None:
    done = cut_off.stores(
        *repository.single(group), more=("--after", "expire", "--output", "json"), code=14
    )
    assert (
        "an earlier run was interrupted while it stored github-secret:acme/app#"
        in done.error["message"]
    )
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
        *targets,
        more=("--after", "expire"),
        code=2,
        under=failing("ftruncate", "ENOSPC", tmp_path / "log"),
    )
    assert "cannot be written: No space left on device" in done.err
    assert (repository.there(group), files.there(group)) == ({}, given.values())
    assert not request.is_over()
    request.stores(*targets, more=("--after", "expire"))
    assert (repository.there(group), request.is_over()) == (given.values(), True)


def test_the_second_answer_is_not_taken_for_the_first(
    job: Job, repository: InGitHub, group: str
) -> None:
    request = asked_at_once(job)
    request.answer()
    request.stores(*repository.single(group))
    newer = request.answer()
    request.stores(*repository.single(group), more=("--pick", newer.code), code=14)
    request.stores(*repository.single(group), more=("--pick", newer.code, "--mode", "replace"))
    assert repository.there(group) == newer.values()


def test_another_machine_has_another_ledger(
    cut_off: Asked, repository: InGitHub, group: str
) -> None:
    done = cut_off.stores(*repository.single(group), code=14, **another_machine(cut_off.job))
    assert "exists already, and GitHub does not return its value" in done.err
    assert repository.writes(group) == 1


class TestInMemory:
    """A program that lets nothing be written to disk."""

    @pytest.fixture(autouse=True)
    def at_github(
        self, job: Job, repository: InGitHub, group: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in repository.environ().items():
            monkeypatch.setenv(name, value)
        self.request, self.place, self.group = asked_at_once(job), repository, group
        self.given = self.request.answer()
        self.to = list(repository.single(group))

    def test_what_is_stored_is_not_sent_again_by_this_process(self, call: Caller) -> None:
        first = call("collect", self.request.code, to=self._by_text())
        again = call("collect", self.request.code, to=self._by_text())
        assert [(row.already, row.known) for row in (*first.stored, *again.stored)] == [
            (False, False),
            (True, False),
        ]
        assert (self.place.there(self.group), self.place.writes(self.group)) == (
            self.given.values(),
            2,
        )
        assert self.request.job.left() == []

    def test_an_uncertain_write_is_reported_and_repeated_on_demand(self, call: Caller) -> None:
        self.place.fake.instead = [None, None, None, drop_after]
        for said in (
            "GitHub did not say whether it stored",
            "an earlier run was interrupted while it stored",
        ):
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
