"""Every command killed at each of its steps, in this process: then `resume`, or the same again, makes one of it.

The same by SIGKILL at system calls: test_commands.py beside it, a few for each command; tests/endurance, all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.kills.collecting import Sweep as CollectSweep
from cli.kills.delivering import Delivering, Reminding
from cli.kills.requesting import KEYS, Asking
from cli.rotating import Rotating
from cli.sweep import LINK_FILE, Sweep
from sealpipe.api import Credential
from sealpipe.flows.share import sealed_link
from sealpipe_rehearsal.running_service import RunningService
from support.fake_github import FakeGitHub, InGitHub
from support.job import Job, client_of
from support.killing import KILLED, InProcess
from support.places import InDir, InDotenv, InFile, Values
from support.storing import an_hour_later, asked_at_once
from support.strace import Point
from support.terminal import Done


class Unlucky(InProcess):
    """The response to its first create is lost, so that it waits and sends the same bytes again."""

    def share(self, *words: str, under: Any = (), **environ: str | None) -> Done:
        self.service.set_faults({"fault": "reset", "after_commit": True, "when": "POST /shares"})
        return super().share(*words, under=under, **environ)

    def run(self, *words: str, under: Any = (), **environ: str | None) -> Done:
        try:
            return super().run(*words, under=under, **environ)
        finally:
            self.service.mend()


class Sealing(InProcess):
    """What it prints is a sealed link: here it comes out opened."""

    def run(self, *words: str, under: Any = (), **environ: str | None) -> Done:
        done = super().run(*words, under=under, **environ)
        credential = Credential.parse(self.api_key)
        links = [sealed_link.unseal(line, credential).reveal() for line in done.out.split()]
        return replace(done, out="".join(f"{link}\n" for link in links))


class AtEachStep(InProcess):
    """Killed where nothing has changed since the last kill, too."""

    every = True


class RotatingInProcess(InProcess, Rotating):
    """A new password goes into a dotenv file, too."""


TO_FILES = ("--link-file", LINK_FILE, "--receipt", "receipt.json")
SHARES: Mapping[str, tuple[Callable[[Path, RunningService], Job], tuple[str, ...]]] = {
    "printed": (AtEachStep, ()),
    "to files": (InProcess, TO_FILES),
    "sealed": (Sealing, ("--seal-link",)),
    "custody required": (InProcess, ("--custody", "require")),
    "a key without custody": (partial(InProcess, custody="none"), ()),
    "a lost response": (Unlucky, ()),
    "stored, too": (RotatingInProcess, ()),
}
COMMITTED = Point("answered", 1)


def kill_everywhere(kill: Callable[[Point, Path], Any], points: Sequence[Point], place: Path) -> list[Any]:
    """Kill at each point; the last one is beyond the end. Nothing is wrong afterwards."""
    found = [kill(point, place / str(number)) for number, point in enumerate(points)]
    wrong = {f"{point} {point.text}": each.wrong() for point, each in zip(points, found, strict=True)}
    assert {point: why for point, why in wrong.items() if why} == {}
    survived = [f"{point} {point.text}" for point, each in zip(points, found, strict=True) if each.code != KILLED]
    assert survived == [f"{points[-1]} {points[-1].text}"], "only the step beyond the end is never reached"
    return found


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("resuming", [False, True], ids=["share", "resume"])
def test_one_share_with_one_link_or_nothing(
    kind: str, service: RunningService, tmp_path: Path, *, resuming: bool
) -> None:
    job, words = SHARES[kind]
    sweep = Sweep(service, words, resuming=resuming, job=job, first=COMMITTED)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= (5 if resuming else 8)
    seen = {(each.shares, each.entries, bool(each.printed)) for each in found}
    assert SHARES[kind][0] is not AtEachStep or len(found) >= (9 if resuming else 29)
    on_the_way = {(1, 1, False), (1, 1, True), (1, 0, True)} | (set() if resuming else {(0, 0, False), (0, 1, False)})
    assert seen >= on_the_way


@pytest.mark.parametrize("key", KEYS)
def test_one_request_with_its_link_its_receipt_and_its_seed_or_nothing(
    key: str, service: RunningService, tmp_path: Path
) -> None:
    sweep = Asking(service, KEYS[key], InProcess)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= 9
    seen = {(len(each.requests), bool(each.listed), bool(each.printed)) for each in found}
    assert {(0, False, False), (0, True, False), (1, True, False), (1, True, True), (1, False, True)} <= seen


@pytest.mark.parametrize("to_file", [False, True], ids=["the link to a receiver", "the link to a file"])
def test_every_message_once_and_again_only_on_demand(service: RunningService, tmp_path: Path, *, to_file: bool) -> None:
    sweep = Delivering(service, to_file, InProcess)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= 12
    assert {(len(each.messages), each.resumed) for each in found} >= {(0, 0), (0, 11), (1, 11), (1, 0)}


def test_every_reminder_once_and_again_only_on_demand(service: RunningService, tmp_path: Path) -> None:
    sweep = Reminding(service, AtEachStep)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= 20
    assert {(len(each.messages), each.again) for each in found} >= {(0, 0), (0, 11), (1, 11), (1, 0)}


class InFileAndDotenv(InFile):
    """Two sinks. What the first one has is what the second one must have."""

    ends = (".pw", ".user", ".env")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._other = InDotenv(folder)

    def single(self, group: str) -> Sequence[str]:
        return [*super().single(group), *self._other.single(group)]

    def each(self, group: str) -> Sequence[str]:
        return [*super().each(group), *self._other.each(group)]

    def there(self, group: str) -> Values:
        first, second = super().there(group), self._other.there(group)
        return first if first == second else {**first, **{f"{key} twice": value for key, value in second.items()}}


@pytest.fixture
def hubs() -> Iterator[Callable[[], FakeGitHub]]:
    """Each with room of its own: a repository takes a hundred secrets."""
    made: list[FakeGitHub] = []

    def make() -> FakeGitHub:
        made.append(FakeGitHub().__enter__())
        return made[-1]

    yield make
    for hub in made:
        hub.__exit__()


@pytest.mark.parametrize(
    ("kind", "elsewhere"),
    [("two sinks", False), ("two sinks", True), ("folders", True), ("one that nobody can read back", False)],
)
def test_every_submission_stored_once_and_none_lost(
    kind: str, service: RunningService, hubs: Callable[[], FakeGitHub], tmp_path: Path, *, elsewhere: bool
) -> None:
    places: Mapping[str, Callable[[Job], Any]] = {
        "two sinks": lambda job: InFileAndDotenv(job.terminal.here),
        "folders": lambda job: InDir(job.terminal.here),
        "one that nobody can read back": lambda _: InGitHub(hubs()),
    }
    sweep = CollectSweep(service, places[kind], elsewhere, job=InProcess, rotten=int(kind == "two sinks"))
    points = sweep.points(tmp_path / "undisturbed")
    found = kill_everywhere(sweep.kill_at, points, tmp_path)
    assert len(found) >= 12
    ended = [each for point, each in zip(points, found, strict=True) if point.text.startswith("DELETE")]
    assert [each.whole for each in ended] == [True], "everything is stored before the request ends"
    taken = [each.said for point, each in zip(points, found, strict=True) if point.text.startswith("PUT")]
    assert bool(taken) == (kind == "one that nobody can read back")
    assert all("an earlier run was interrupted while it stored" in said for said in taken), "and it says why it stops"


@dataclass(frozen=True)
class Expired:
    """What came of `requests expire`, killed, and run again. `lost` are codes of submissions, or kept twice."""

    code: int
    again: tuple[int, ...]
    deletes: int
    lost: Sequence[str]
    is_over: bool

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if self.again[-1] != 0 or not self.is_over:
            return f"it never ended: {self.again}"
        return f"{self.deletes} DELETEs" if self.deletes > 1 else f"not kept once: {self.lost}" if self.lost else None


class Expiring(NamedTuple):
    """A request with two submissions, which is expired."""

    service: RunningService

    def points(self, place: Path) -> list[Point]:
        job = InProcess(place, self.service)
        request = asked_at_once(job)
        request.answer()
        return job.steps(place, lambda under: job.run("requests", "expire", request.code, under=under), "")

    def kill_at(self, point: Point, place: Path) -> Expired:
        job = InProcess(place, self.service)
        request = asked_at_once(job)
        given = sorted(request.answer().code for _ in range(2))
        words = ("requests", "expire", request.code)
        code = job.run(*words, under=job.killing(point, place)).code
        again = [job.run(*words).code]
        if again == [9]:  # a DELETE may be on its way
            an_hour_later(job)
            again.append(job.run(*words).code)
        lines = [json.loads(line) for path in job.state.rglob("*.jsonl") for line in path.read_text().splitlines()]
        kept = sorted(line["submission"]["short_code"] for line in lines if "submission" in line)
        lost = [] if kept == given and request.submissions() == len(given) else [*given, *kept]
        return Expired(code, tuple(again), request.deletes(), lost, request.is_over())


class ExpiringByName(NamedTuple):
    """Two requests of one name, which one command expires."""

    service: RunningService

    def points(self, place: Path) -> list[Point]:
        job, words = self._ask(place)
        return job.steps(place, lambda under: job.run(*words, under=under), "")

    def kill_at(self, point: Point, place: Path) -> Expired:
        job, words = self._ask(place)
        code = job.run(*words, under=job.killing(point, place)).code
        again = [job.run(*words).code]
        if again == [9]:  # a DELETE may be on its way
            an_hour_later(job)
            again.append(job.run(*words).code)
        codes = [json.loads(path.read_text())["short_code"] for path in job.terminal.here.glob("*.json")]
        deletes = [
            sum(each.method == "DELETE" and code in each.target for each in job.service.seen()) for code in codes
        ]
        with client_of(job) as client:
            is_over = not list(client.iter_requests())
        return Expired(code, tuple(again), max(deletes), [], is_over)

    def _ask(self, place: Path) -> tuple[InProcess, tuple[str, ...]]:
        job = InProcess(place, self.service)
        for number in range(2):
            assert job.run("request", "-a", "Password", "--name", "twin", "--receipt", f"{number}.json").code == 0
        return job, ("requests", "expire", "--name", "tw*", "--yes")


def test_one_delete_at_most_of_each_of_several(service: RunningService, tmp_path: Path) -> None:
    sweep = ExpiringByName(service)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= 11
    assert {each.again for each in found} == {(0,), (9, 0)}, "no second DELETE follows within the hour"


def test_one_delete_at_most_and_every_submission_kept(service: RunningService, tmp_path: Path) -> None:
    sweep = Expiring(service)
    found = kill_everywhere(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert len(found) >= 8
    assert {each.again for each in found} == {(0,), (9, 0)}, "no second DELETE follows within the hour"
