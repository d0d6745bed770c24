"""Killing a share at one system call after another: whatever the moment, one share and one link in
the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cli.outside import State, look
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job
from support.strace import Point
from support.terminal import Done

P = TypeVar("P")
MATTER = (
    "mkdir",
    "openat",
    "fchmod",
    "flock",
    "write",
    "fsync",
    "link",
    "linkat",
    "rename",
    "renameat",
    "unlink",
    "unlinkat",
    "connect",
    "sendto",
    "recvfrom",
    "ftruncate",
    "close",
    "exit_group",
)
"""The calls that change what is on disk, at the service or on stdout, and the last one of all."""


COMMITTED = Point("recvfrom", 1)
"""The share is at the service, and nobody knows of it yet."""


@dataclass(frozen=True)
class Killed:
    """What was found after one kill, and after `sealpipe resume`."""

    point: Point
    code: int
    printed: str
    shares: int
    entries: int
    resume_code: int
    resumed: str
    shares_then: int
    entries_then: int
    litter: int
    said: str
    resuming: bool
    state: State

    @property
    def links(self) -> set[str]:
        """Every link that anybody was given."""
        return set(re.findall(r"http\S+", self.printed + self.resumed))

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if self.resume_code != 0:
            return f"resume ended with {self.resume_code}"
        if self.entries_then:
            return "an entry is left"
        if self.shares_then > 1 or len(self.links) > 1:
            return f"{self.shares_then} shares, {len(self.links)} links"
        if self.shares_then != len(self.links):
            return f"{self.shares_then} shares and {len(self.links)} links"
        if self.entries and not self.resumed and not self.printed:
            return "an entry was kept and no link came of it"
        if self.printed and not self.printed.endswith("\n"):
            return "half a link was printed"
        if "Traceback" in self.said or "bug of ours" in self.said:
            return "it ended in a traceback"
        # Who runs `resume` knows of the entry already.
        if (
            self.code > 0
            and self.entries
            and not self.resuming
            and "sealpipe resume" not in self.said
        ):
            return "it could speak and did not name its entry"
        return None


LINK_FILE = "link.txt"


@dataclass(frozen=True)
class Sweep:
    """What is swept: a share (with more options), or the `resume` that follows one killed after its
    commit.
    """

    service: RunningService
    words: tuple[str, ...] = ()
    resuming: bool = False
    signal: str = "SIGKILL"
    job: Callable[[Path, RunningService], Job] = Job
    """Whose share it is."""
    first: Point = COMMITTED
    """Where the share is killed that `resume` follows."""

    def points(self, place: Path) -> list[Point]:
        """The calls that it makes undisturbed, from the moment it touches its state folder; then
        one beyond.
        """
        job = self.job(place, self.service)
        return job.steps(
            place / "trace", lambda under: self._last(job, place, under), str(job.state)
        )

    def kill_at(self, point: Point, place: Path) -> Killed:
        """Do it, killed at that point; then resume; then look."""
        job = self.job(place, self.service)
        killed = self._last(job, place, job.killing(point, place / "log", self.signal))
        state = look(job, killed)
        printed, shares, entries = _told(job, killed), job.shares(), job.entries()
        resumed = job.resume()
        found = Killed(
            point,
            killed.code,
            printed,
            len(shares),
            len(entries),
            resumed.code,
            _told(job, resumed),
            len(job.shares()),
            len(job.entries()),
            len(job.left()) - len(job.entries()),
            killed.err,
            resuming=self.resuming,
            state=state,
        )
        if found.wrong() is None:
            assert job.opens(next(iter(found.links))) if found.links else job.untouched()
        return found

    def _last(self, job: Job, place: Path, under: Any) -> Done:
        """The command that is swept."""
        if not self.resuming:
            return job.share(*self.words, under=under)
        first = job.share(*self.words, under=job.killing(self.first, place / "first"))
        assert first.code == -9, first
        return job.resume(under=under)


def _told(job: Job, done: Done) -> str:
    """What came out of a command: on stdout, or in the link file."""
    file = job.terminal.here / LINK_FILE
    return done.out + (file.read_text() if file.exists() else "")


def spread(found: Sequence[P], number: int) -> list[P]:
    """Some of many, evenly, with the first and the last."""
    if len(found) <= number:
        return list(found)
    return [found[index * (len(found) - 1) // (number - 1)] for index in range(number)]
