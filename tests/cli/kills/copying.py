"""Killing `sealpipe copy` of a new password into two stores at one step after another: the rerun
ends with one value in both, and a value that came into the second store stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.outside import State, look
from cli.sweep import MATTER
from sealpipe_rehearsal.running_service import RunningService
from support.fake_github import FakeGitHub, InGitHub
from support.job import Job
from support.killing import InProcess
from support.strace import Point
from support.terminal import Done

COPY = ("copy", "Password=gen:password?symbols=0")
FIRST, SECOND = "app.env", "password"
BEFORE = "OTHER=kept\nPW=old\n"


@dataclass(frozen=True)
class Killed:
    """What was found after a kill, and after the rerun."""

    point: Point
    code: int
    second: str
    """What the second store had after the kill; empty for what it had before."""
    rerun: int
    values: tuple[str, str]
    others: str
    """What else the first store has in the end."""
    litter: Sequence[str]
    said: str
    state: State

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        first, second = self.values
        if self.rerun != 0:
            return f"the rerun ended with {self.rerun}: {self.said}"
        if not first or first != second or first == "old":
            return "the stores do not have one new value"
        if self.second and self.code != 0 and self.second != second:
            return "a second value came into the second store"
        if self.litter:
            return f"litter: {self.litter}"
        if "Traceback" in self.said or "bug of ours" in self.said or first in self.said:
            return "a traceback, or the value, was shown"
        return None if self.others == "OTHER=kept\n" else f"others: {self.others}"


@dataclass(frozen=True)
class Copying:
    """What is swept: a copy into a dotenv file and a file, or the secrets of a repository."""

    service: RunningService
    hub: FakeGitHub | None = None
    is_new: bool = False
    """Whether neither store has a value before, and none may be replaced."""
    job: type[Job] = InProcess
    signal: str = "SIGKILL"

    def points(self, place: Path) -> list[Point]:
        """The steps of a copy that nobody disturbs, then one beyond."""
        job = self._set_up(place)
        return job.steps(
            place / "trace", lambda under: self._copy(job, under), str(job.state), MATTER
        )

    def kill_at(self, point: Point, place: Path) -> Killed:
        """Copy, killed at that point; look; copy again; and look."""
        job = self._set_up(place)
        killed = self._copy(job, job.killing(point, place / "log", self.signal))
        second = self._read_second(job)
        there = [f"github-secret: {second}"] if self.hub and second else []
        state = look(job, killed, there)
        if killed.code == 0:  # the step beyond the end: a second copy would make another value
            return self._find(job, point, killed, Done(0, "", ""), second, state)
        return self._find(job, point, killed, self._copy(job), second, state)

    def _set_up(self, place: Path) -> Job:
        job = self.job(place, self.service)
        if self.hub is not None:
            job.terminal.environ |= InGitHub(self.hub).environ()
            self.hub.vaults.places["acme", "app"].opened.clear()
            self.hub.vaults.places["acme", "app"].told.clear()
        if not self.is_new:
            job.terminal.file(FIRST, BEFORE)
            if self.hub is None:
                job.terminal.file(SECOND, "old")
        return job

    def _copy(self, job: Job, under: object = ()) -> Done:
        mode = "create" if self.is_new else "merge"
        second = "github-secret:acme/app#PW=Password" if self.hub else f"file:{SECOND}"
        to = ("--to", f"dotenv:{FIRST}#PW=Password", "--to", second)
        return job.run(*COPY, *to, "--mode", mode, under=under)

    def _find(
        self, job: Job, point: Point, killed: Done, rerun: Done, second: str, state: State
    ) -> Killed:
        path = job.terminal.here / FIRST
        others, _, first = (path.read_text() if path.exists() else "").partition("PW=")
        names = {each.name for each in job.terminal.here.iterdir()} - {FIRST, SECOND}
        records = [each.name for each in (job.state / "copies").glob("*")]
        return Killed(
            point,
            killed.code,
            second,
            rerun.code,
            (first.strip(), self._read_second(job) or "old"),
            "OTHER=kept\n" if self.is_new else others,
            sorted([*names, *records]),
            killed.out + killed.err + rerun.out + rerun.err,
            state,
        )

    def _read_second(self, job: Job) -> str:
        if self.hub is not None:
            return self.hub.vaults.places["acme", "app"].opened.get("PW", b"").decode()
        path = job.terminal.here / SECOND
        found = path.read_text() if path.exists() else ""
        return "" if found == "old" else found
