"""Every command killed at each of its steps, in this process; and what must be true of all those
kills together.

Each function sweeps one scenario, and returns what was found at each kill. AssertionError: a
promise broke, which it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cli.kills.collecting import Sweep as CollectSweep
from cli.kills.copying import Copying
from cli.kills.delivering import Delivering, Reminding
from cli.kills.expiring import Expiring, ExpiringByName
from cli.kills.requesting import KEYS, Asking
from cli.rotating import Rotating
from cli.sweep import LINK_FILE, Sweep
from sealpipe.api.operation import Credential
from sealpipe.share import sealed_link
from sealpipe_rehearsal.running_service import RunningService
from support.fake_github import FakeGitHub, InGitHub
from support.job import Job
from support.killing import KILLED, InProcess
from support.places import InDir, InDotenv, InFile, Values
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


class Unanswered(InProcess):
    """The response to each try of its create is lost, so that it looks the request up."""

    def run(self, *words: str, under: Any = (), **environ: str | None) -> Done:
        if words[0] == "request":
            lost = {
                "fault": "reset",
                "after_commit": True,
                "when": "POST /requests",
                "times": "always",
            }
            self.service.set_faults(lost)
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


def kill_everywhere(
    kill: Callable[[Point, Path], Any], points: Sequence[Point], place: Path
) -> list[Any]:
    """Kill at each point; the last one is beyond the end. Nothing is wrong afterwards."""
    found = [kill(point, place / str(number)) for number, point in enumerate(points)]
    wrong = {
        f"{point} {point.text}": each.wrong() for point, each in zip(points, found, strict=True)
    }
    broken = [f"{point}: {why}" for point, why in wrong.items() if why]
    assert not broken, "\n".join(broken)
    survived = [
        f"{point} {point.text}"
        for point, each in zip(points, found, strict=True)
        if each.code != KILLED
    ]
    assert survived == [f"{points[-1]} {points[-1].text}"], (
        "only the step beyond the end is never reached"
    )
    return found


def share(kind: str, service: RunningService, place: Path, *, resuming: bool = False) -> list[Any]:
    """One share with one link, or nothing.

    `resuming`: a share is killed first, and `resume` at each of its steps.
    """
    job, words = SHARES[kind]
    sweep = Sweep(service, words, resuming=resuming, job=job, first=COMMITTED)
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) >= (5 if resuming else 8)
    seen = {(each.shares, each.entries, bool(each.printed)) for each in found}
    assert job is not AtEachStep or len(found) >= (7 if resuming else 13)
    on_the_way = {(1, 1, False), (1, 1, True), (1, 0, True)} | (
        set() if resuming else {(0, 0, False), (0, 1, False)}
    )
    assert seen >= on_the_way
    return found


REQUESTS: Mapping[str, tuple[type[Job], tuple[str, ...]]] = {
    **{key: (InProcess, words) for key, words in KEYS.items()},
    "a fresh key, all responses lost": (Unanswered, KEYS["a fresh key"]),
}


def request(key: str, service: RunningService, place: Path) -> list[Any]:
    """One request with its link, its receipt and its seed, or nothing."""
    job, words = REQUESTS[key]
    sweep = Asking(service, words, job)
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) >= 9
    seen = {(len(each.requests), bool(each.listed), bool(each.printed)) for each in found}
    assert {
        (0, False, False),
        (0, True, False),
        (1, True, False),
        (1, True, True),
        (1, False, True),
    } <= seen
    return found


def delivery(service: RunningService, place: Path, *, to_file: bool = False) -> list[Any]:
    """Every message once, and again only on demand.

    `to_file`: the link; else it goes to a receiver.
    """
    sweep = Delivering(service, to_file, InProcess)
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) >= 12
    assert {(len(each.messages), each.resumed) for each in found} >= {
        (0, 0),
        (0, 11),
        (1, 11),
        (1, 0),
    }
    return found


def reminder(service: RunningService, place: Path) -> list[Any]:
    """Every reminder once, and again only on demand."""
    sweep = Reminding(service, AtEachStep)
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) >= 16
    assert {(len(each.messages), each.again) for each in found} >= {
        (0, 0),
        (0, 11),
        (1, 11),
        (1, 0),
    }
    return found


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
        return (
            first
            if first == second
            else {**first, **{f"{key} twice": value for key, value in second.items()}}
        )


UNREADABLE = "one that nobody can read back"
PLACES: Mapping[str, Callable[[ExitStack, Job], Any]] = {
    "two sinks": lambda _, job: InFileAndDotenv(job.terminal.here),
    "folders": lambda _, job: InDir(job.terminal.here),
    # Each with room of its own: a repository takes a hundred secrets.
    UNREADABLE: lambda stack, _: InGitHub(stack.enter_context(FakeGitHub())),
}


def collect(
    kind: str, service: RunningService, place: Path, *, elsewhere: bool = False
) -> list[Any]:
    """Every submission stored once, and none lost. `elsewhere`: the rerun is on another machine."""
    with ExitStack() as stack:
        makes = partial(PLACES[kind], stack)
        sweep = CollectSweep(
            service, makes, elsewhere, job=InProcess, rotten=int(kind == "two sinks")
        )
        points = sweep.points(place / "undisturbed")
        found = kill_everywhere(sweep.kill_at, points, place)
    assert len(found) >= 12
    ended = [
        each for point, each in zip(points, found, strict=True) if point.text.startswith("DELETE")
    ]
    assert {each.whole for each in ended} == {True}, "everything is stored before the request ends"
    taken = [
        each.said for point, each in zip(points, found, strict=True) if point.text.startswith("PUT")
    ]
    assert bool(taken) == (kind == UNREADABLE)
    assert all("an earlier run was interrupted while it stored" in said for said in taken), (
        "and it says why it stops"
    )
    return found


def expire(service: RunningService, place: Path, *, by_name: bool = False) -> list[Any]:
    """One DELETE at most, and every submission kept.

    `by_name`: one command expires two requests.
    """
    sweep = ExpiringByName(service) if by_name else Expiring(service)
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    again = {each.again for each in found}
    assert again == {(0,), (9, 0)}, f"no second DELETE follows within the hour: {again}"
    assert len(found) >= (11 if by_name else 8)
    return found


COPIES = ("over old values", "of new ones", "into one that nobody can read back")


def copy(kind: str, service: RunningService, place: Path) -> list[Any]:
    """One new value in both stores, and no second one."""
    with ExitStack() as stack:
        hub = stack.enter_context(FakeGitHub()) if kind == COPIES[2] else None
        sweep = Copying(service, hub, is_new=kind == COPIES[1])
        found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) >= 10
    assert {bool(each.second) for each in found} == {False, True}
    return found
