"""Another machine, which knows nothing of the first, collects the same: later, or at the same
moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.fake_github import InGitHub
from support.faulty import Exchange, Faulty
from support.job import Job, ended
from support.openbao import InVault
from support.places import Place
from support.storing import MARK, NAMES, Asked, Into, another_machine, asked_at_once
from support.terminal import Done

READABLE = [name for name in NAMES if name != "github-secret"]
MARKED = ["vault", "aws-sm", "aws-ssm", "k8s", "gitlab-variable"]
UNMARKED = ["keyring", "file", "dir", "dotenv"]


@pytest.mark.parametrize("name", READABLE)
def test_stores_nothing_twice_and_leaves_alone_what_was_rotated(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked_at_once(job)
    given = request.answer()
    request.stores(*place.single(group))
    before = place.writes(group)
    done = request.stores(*place.single(group), **another_machine(job))
    assert {line.rpartition("\t")[2] for line in done.out.splitlines()} == {"already there"}
    assert (place.there(group), place.writes(group)) == (given.values(), before)

    place.rotate(group, "rotated-since-then")
    before = place.writes(group)
    # Where nothing can be kept beside the value, only what is equal is known to be this
    # submission's.
    request.stores(*place.single(group), code=0 if place.marked else 14, **another_machine(job))
    assert (place.there(group)["password"], place.writes(group)) == (b"rotated-since-then", before)


def test_which_places_keep_a_marker_is_known(into: Into) -> None:
    assert [name for name in READABLE if into(name).marked] == MARKED


def test_cannot_know_what_github_has_and_overwrites_nothing(
    job: Job, into: Into, group: str
) -> None:
    place, request = into("github-secret"), asked_at_once(job)
    assert isinstance(place, InGitHub)
    given = request.answer()
    request.stores(*place.single(group))
    assert place.writes(group) == 2, "two secrets"
    done = request.stores(
        *place.single(group), code=14, more=("--after", "expire"), **another_machine(job)
    )
    assert "exists already, and GitHub does not return its value" in done.err
    assert (place.there(group), place.writes(group)) == (given.values(), 2)
    assert not request.is_over()


@pytest.mark.parametrize("name", ["vault", "aws-sm"])
def test_collecting_each_stores_only_what_is_new(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked_at_once(job)
    request.answer()
    first = request.stores(*place.each(group), more=("--pick", "each", "--output", "json")).json
    name_there = f"{group}/{first['submissions'][0]['marker']}"
    before = place.writes(name_there)
    newer = request.answer()
    done = request.stores(
        *place.each(group), more=("--pick", "each", "--output", "json"), **another_machine(job)
    ).json
    assert [row["already"] for row in done["stored"]] == [True, False]
    assert place.writes(name_there) == before
    assert place.there(f"{group}/{done['submissions'][1]['marker']}") == newer.values()


# -- at the same moment --------------------------------------------------------------------------


@pytest.fixture
def at_once(service: RunningService) -> Callable[..., list[Done]]:
    """Run commands as machines of their own; each has read the submissions when the first of them
    stores any.
    """

    def run(*commands: tuple[Asked, Sequence[str]], apart: bool = True) -> list[Done]:
        together = threading.Barrier(len(commands), timeout=60)

        def meet(exchange: Exchange) -> None:
            answer = exchange.forward()
            if exchange.received.target.endswith("/submissions"):
                together.wait()
            exchange.send(answer.head + answer.body)

        with Faulty(service.address, then=meet) as between:
            started = [
                request.job.start(
                    *words,
                    environ={
                        **(another_machine(request.job) if apart else {}),
                        "SEALPIPE_BASE_URL": between.base_url,
                    },
                )
                for request, words in commands
            ]
            return [ended(process) for process in started]

    return run


def outcomes(done: Sequence[Done]) -> list[str]:
    """What each target of each came to, in no order."""
    for each in done:
        assert each.code == 0, each
        assert MARK not in each.out + each.err
    return sorted(line.rpartition("\t")[2] for each in done for line in each.out.splitlines())


@pytest.mark.parametrize("name", ["vault", "aws-sm", "k8s"])
def test_two_at_once_merge_one_submission_into_a_place_once(
    name: str, job: Job, into: Into, group: str, at_once: Callable[..., list[Done]]
) -> None:
    place, request = into(name), asked_at_once(job)
    given = request.answer()
    words = [*request.words(*place.single(group)), "--mode", "merge"]
    assert outcomes(at_once((request, words), (request, words))) == ["already there", "stored"]
    assert place.there(group) == given.values()
    assert written(place, group) == 1


def test_two_requests_merged_at_once_into_one_path_are_both_there(
    job: Job, into: Into, vault: InVault, group: str, at_once: Callable[..., list[Done]]
) -> None:
    into("vault")
    requests = [asked_at_once(job, f"{number}.json") for number in range(3)]
    given = [request.answer() for request in requests]
    commands = [
        (request, request.words(f"vault:secret/{group}?mode=merge#key{number}=staging_password"))
        for number, request in enumerate(requests)
    ]
    assert outcomes(at_once(*commands)) == ["stored"] * 3
    assert vault.there(group) == {
        f"key{number}": each.password.encode() for number, each in enumerate(given)
    }
    assert vault.writes(group) == 3
    assert len(vault.marks(group)) == 3


def test_two_at_once_store_each_submission_in_its_place_once(
    job: Job, into: Into, vault: InVault, group: str, at_once: Callable[..., list[Done]]
) -> None:
    into("vault")
    request = asked_at_once(job)
    given = {each.code: each for each in (request.answer() for _ in range(3))}
    words = [*request.words(*vault.each(group)), "--pick", "each"]
    assert (
        outcomes(at_once((request, words), (request, words)))
        == ["already there"] * 3 + ["stored"] * 3
    )
    places = [f"{group}/{name}" for name in vault.names(group)]
    assert len(places) == 3
    assert [vault.writes(place) for place in places] == [1, 1, 1]
    assert sorted(vault.there(place)["password"] for place in places) == sorted(
        each.password.encode() for each in given.values()
    )


def test_two_commands_take_turns_and_write_a_secret_once(
    job: Job, into: Into, group: str, at_once: Callable[..., list[Done]]
) -> None:
    place, request = into("github-secret"), asked_at_once(job)
    given = request.answer()
    words = request.words(*place.single(group))
    assert outcomes(at_once((request, words), (request, words), apart=False)) == [
        "already there",
        "stored, not read back",
    ]
    assert (place.there(group), place.writes(group)) == (given.values(), 2)


@pytest.mark.parametrize("name", ["file", "dir", "dotenv"])
def test_two_at_once_write_a_file_once(
    name: str, job: Job, into: Into, group: str, at_once: Callable[..., list[Done]], tmp_path: Path
) -> None:
    place, request = into(name), asked_at_once(job)
    given = request.answer()
    words = request.words(*place.single(group))
    told = outcomes(at_once((request, words), (request, words)))
    assert set(told) <= {"already there", "stored"}
    assert "stored" in told
    assert place.there(group) == given.values()
    left = {
        path.name
        for path in (tmp_path / "work").rglob("*")
        if path.is_file() and path.suffix != ".json"
    }
    assert len(left) == (1 if name == "dotenv" else 2), "no litter"


def written(place: Place, group: str) -> int:
    """How often a place was written, where it counts that."""
    count = place.writes(group)
    return len(count) if isinstance(count, list) else int(count)
