"""Killing `collect --pick each --after expire` at one step after another: each submission stored
once, none lost.

A step is a system call, or a request over HTTP to the service or to the backend: before it gets
there, or after it was carried out and before its answer is back.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cli.outside import State, look
from sealpipe_rehearsal.running_service import RunningService
from support.faulty import Exchange, Fault, Faulty
from support.job import Job, ended
from support.places import Place, Values
from support.storing import MARK, Asked, Given, an_hour_later, another_machine, asked_at_once
from support.strace import Point
from support.terminal import Done

MATTER = (
    "mkdir", "openat", "read", "fchmod", "flock", "write", "fsync", "link", "linkat", "rename",
    "renameat", "renameat2", "unlink", "unlinkat", "connect", "sendto", "recvfrom", "ftruncate",
    "lseek", "close", "exit_group",
)  # fmt: skip
"""The calls that read or change what is on disk, at the service, in the backend or on stdout, and
the last of all.
"""


class Call(NamedTuple):
    """The `number`th request over HTTP, counted from 0; `late`: it was carried out.

    `text` is what it asked.
    """

    number: int
    late: bool
    text: str = ""

    def __str__(self) -> str:
        return f"{'after' if self.late else 'before'} request {self.number}"


Step = Point | Call


@dataclass
class Between:
    """Stands before the service and the backend, counts what is asked, and kills who asks at one of
    the calls.
    """

    at: Call | None = None
    asked: list[str] = field(default_factory=list)
    _known: threading.Event = field(default_factory=threading.Event)
    _pid: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, to: str) -> Fault:
        def fault(exchange: Exchange) -> None:
            with self._turn:
                number = len(self.asked)
                self.asked.append(f"{to}: {exchange.received.method} {exchange.received.target}")
            mine = self.at is not None and self.at.number == number
            if mine and self.at is not None and not self.at.late:
                self._kill(exchange)
                return
            answer = exchange.forward()
            if mine:
                self._kill(exchange)
                return
            exchange.send(answer.head + answer.body)

        return fault

    def kills(self, pid: int) -> None:
        """Whom to kill."""
        self._pid = pid
        self._known.set()

    def _kill(self, exchange: Exchange) -> None:
        self._known.wait(30)
        os.kill(self._pid, signal.SIGKILL)
        exchange.close()


@dataclass(frozen=True)
class Killed:
    """What was found after a kill (`code` -9, or how the command ended that outlived it), and after
    the rerun.

    `whole`: the first run had stored everything already.
    `torn` is what is wrong with the places after the kill, `wrong_there` what is in the end.
    `reruns` are the exit codes of the runs that followed: after 9 an hour later, after 14 of a
    place that cannot be read with replace.
    """

    step: Step
    code: int
    torn: str
    whole: bool
    reruns: Sequence[int]
    wrong_there: str
    over: bool
    deletes: int
    lost: int
    litter: Sequence[str]
    said: str
    state: State
    ends: int = 0
    """How a run ends that nobody kills: 13 where a submission cannot be opened."""

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if self.code not in (self.ends, -9):
            return f"it ended with {self.code}"
        if self.reruns[-1] != self.ends:
            return f"the reruns ended with {self.reruns}"
        if self.torn or self.wrong_there:
            return self.torn or self.wrong_there
        if not self.over:
            return "the request has not ended"
        if self.deletes > 1:
            return f"{self.deletes} DELETEs arrived"
        if self.lost:
            return f"the service has {self.lost} submissions less"
        if self.litter:
            return f"litter: {self.litter}"
        if "Traceback" in self.said or "bug of ours" in self.said:
            return "a traceback"
        return "a value was shown" if MARK in self.said else None


ROTTEN = base64.b64encode(b"\2" * 200).decode()
"""A submission that no key opens."""

RERUNS = 3
"""Collecting again comes to an end after so many at most."""

Makes = Callable[[Job], Place]


@dataclass(frozen=True)
class Sweep:
    """What is swept: a place, and whether the rerun is on another machine, which knows nothing of
    the first.
    """

    service: RunningService
    makes: Makes
    elsewhere: bool = False
    number: int = 2
    """Submissions of each request, where each can have a place."""
    job: type[Job] = Job
    rotten: int = 0
    """More submissions, which nobody can open."""

    @property
    def ends(self) -> int:
        """The exit code of a command that nobody disturbs."""
        return 13 if self.rotten else 0

    def points(self, place: Path, names: Sequence[str] = MATTER) -> list[Point]:
        """The system calls of a command that nobody disturbs, from its first connection on; then
        one beyond.

        Of those names; all of them where there are none.
        """
        request, there, group, _ = self._set_up(place)
        words = self._words(request, there, group)
        return request.job.steps(
            place / "trace",
            lambda under: request.job.run(*words, under=under),
            f"htons({self.service.address.port})",
            names,
            code=self.ends,
        )

    def calls(self, place: Path) -> list[Call]:
        """Its requests, each before and after; then one beyond."""
        request, there, group, _ = self._set_up(place)
        between = Between()
        with self._doors(there, between) as environ:
            done = request.job.run(*self._words(request, there, group), **environ)
        assert done.code == 0, done
        found = [
            Call(number, late, text)
            for number, text in enumerate(between.asked)
            for late in (False, True)
        ]
        return [*found, Call(len(between.asked), late=False, text="never reached")]

    def kill_at(self, step: Step, place: Path) -> Killed:
        """Collect, killed at that step; look; then collect again until it is done; and look."""
        request, there, group, given = self._set_up(place)
        if isinstance(step, Point):
            under = request.job.killing(step, place / "log")
            done = request.job.run(*self._words(request, there, group), under=under)
            return self._afterwards(step, done, request, there, group, given, {})
        between = Between(step)
        with self._doors(there, between) as environ:
            process = request.job.start(*self._words(request, there, group), environ=environ)
            between.kills(process.pid)
            return self._afterwards(step, ended(process), request, there, group, given, environ)

    def _afterwards(
        self,
        step: Step,
        done: Done,
        request: Asked,
        there: Place,
        group: str,
        given: Sequence[Given],
        environ: Mapping[str, str],
    ) -> Killed:
        state = look(request.job, done, _stored(there, group))
        torn = self._torn(there, group, given)
        whole = len(_all(there, group)) == len(given) and not self._wrong(
            there, group, given, most=1
        )
        machine = {**environ, **(another_machine(request.job) if self.elsewhere else {})}
        reruns, said, hours, more = [], done.out + done.err, False, list[str]()
        while len(reruns) < RERUNS:
            again = request.job.run(*self._words(request, there, group), *more, **machine)
            reruns.append(again.code)
            said += again.out + again.err
            if again.code in {9, self.ends} - {0} and not hours and not request.is_over():
                # A DELETE may be on its way, and no other is sent for an hour.
                an_hour_later(request.job)
                hours = True
            elif (
                again.code == 14 and there.blind and not more
            ):  # it may be there, and nobody can read it back
                more = ["--mode", "replace"]
            else:
                break
        wrong_there = self._wrong(there, group, given, most=2 if more else 1)
        return Killed(
            step, done.code, torn, whole, reruns, wrong_there, request.is_over(), request.deletes(),
            len(given) + self.rotten - request.submissions() + self._lost(request, machine),
            self._litter(request, group), said, state, self.ends,
        )  # fmt: skip

    def _set_up(self, place: Path) -> tuple[Asked, Place, str, list[Given]]:
        job = self.job(place, self.service)
        there = self.makes(job)
        job.terminal.environ |= there.environ()
        request = asked_at_once(job)
        number = self.number if there.each("") else 1
        for _ in range(self.rotten):
            job.service.submitter().send(request.link, ROTTEN)
        return request, there, f"g{secrets.token_hex(5)}", [request.answer() for _ in range(number)]

    def _lost(self, request: Asked, machine: Mapping[str, str | None]) -> int:
        """How many of those that nobody can open are not kept by the machine that ended the
        request, or were not.
        """
        folder = Path(machine.get("SEALPIPE_STATE_DIR") or request.job.state) / "requests"
        kept = {
            line
            for path in folder.glob("*.jsonl")
            for line in path.read_text().splitlines()
            if ROTTEN in line
        }
        return self.rotten - len(kept)

    def _words(self, request: Asked, there: Place, group: str) -> list[str]:
        """Each submission into a place of its own; where none can have that, the only one."""
        each = there.each(group)
        return [
            *request.words(*(each or there.single(group))),
            "--pick",
            "each" if each else "only",
            "--after",
            "expire",
        ]

    @contextmanager
    def _doors(self, there: Place, between: Between) -> Iterator[Mapping[str, str]]:
        """The settings of a command that reaches service and backend by way of `between`."""
        with ExitStack() as stack:
            service = stack.enter_context(Faulty(self.service.address, then=between("service")))
            environ = {"SEALPIPE_BASE_URL": service.base_url}
            if there.url:
                backend = stack.enter_context(Faulty(there.address(), then=between(there.name)))
                environ |= there.environ(f"http://127.0.0.1:{backend.port}")
            yield environ

    def _torn(self, there: Place, group: str, given: Sequence[Given]) -> str:
        """What a kill left of a submission that is neither nothing nor whole: a value cut off, or
        another one.
        """
        values = [each.values() for each in given]
        for found in _all(there, group):
            if not any(found.items() <= each.items() for each in values):
                return "a place holds what nobody typed"
        return ""

    def _wrong(self, there: Place, group: str, given: Sequence[Given], most: int) -> str:
        found = _all(there, group)
        if sorted(map(_told, found)) != sorted(_told(each.values()) for each in given):
            return f"{len(found)} places, and not each submission in one"
        written = max(map(there.count, there.groups(group)))
        return f"a place was written {written} times" if written > most else ""

    def _litter(self, request: Asked, group: str) -> list[str]:
        names = [
            path.name for path in request.job.terminal.here.iterdir() if path != request.receipt
        ]
        return sorted(name for name in names if not name.startswith(group))


def _stored(there: Place, group: str) -> list[str]:
    """What a place holds, for those that are no files of the job."""
    return (
        [f"{there.name}: {' '.join(sorted(values))}" for values in _all(there, group)]
        if there.url
        else []
    )


def _told(values: Values) -> str:
    return json.dumps({key: value.decode() for key, value in sorted(values.items())})


def _all(there: Place, group: str) -> list[Values]:
    """What each place of a group holds."""
    return [found for name in there.groups(group) if (found := there.there(name))]
