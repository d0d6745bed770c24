"""`requests expire` killed at one step after another, and run again: one DELETE at most, every
submission kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cli.outside import State, look
from sealpipe.errors import NotFoundError
from sealpipe_rehearsal.running_service import RunningService
from support.job import client_of
from support.killing import InProcess
from support.storing import an_hour_later, asked_at_once
from support.strace import Point


@dataclass(frozen=True)
class Expired:
    """What came of `requests expire`, killed, and run again.

    `lost` are codes of submissions, or kept twice.
    """

    code: int
    again: tuple[int, ...]
    deletes: int
    lost: Sequence[str]
    is_over: bool
    state: State

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if self.deletes > 1:
            return f"{self.deletes} DELETEs"
        if self.lost:
            return f"not kept once: {self.lost}"
        return None if self.again[-1] == 0 and self.is_over else f"it never ended: {self.again}"


class Expiring(NamedTuple):
    """A request with two submissions, which is expired."""

    service: RunningService

    def points(self, place: Path) -> list[Point]:
        job = InProcess(place, self.service)
        request = asked_at_once(job)
        request.answer()
        return job.steps(
            place, lambda under: job.run("requests", "expire", request.code, under=under), ""
        )

    def kill_at(self, point: Point, place: Path) -> Expired:
        job = InProcess(place, self.service)
        request = asked_at_once(job)
        given = sorted(request.answer().code for _ in range(2))
        words = ("requests", "expire", request.code)
        killed = job.run(*words, under=job.killing(point, place))
        state = look(job, killed)
        again = [job.run(*words).code]
        if again == [9]:  # a DELETE may be on its way
            an_hour_later(job)
            again.append(job.run(*words).code)
        lines = [
            json.loads(line)
            for path in job.state.rglob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        kept = sorted(line["submission"]["short_code"] for line in lines if "submission" in line)
        try:
            there, is_over = request.submissions(), request.is_over()
        except NotFoundError:  # destroyed
            there, is_over = 0, True
        lost = [] if kept == given and there == len(given) else [*given, *kept]
        return Expired(killed.code, tuple(again), request.deletes(), lost, is_over, state)


class ExpiringByName(NamedTuple):
    """Two requests of one name, which one command expires."""

    service: RunningService

    def points(self, place: Path) -> list[Point]:
        job, words = self._ask(place)
        return job.steps(place, lambda under: job.run(*words, under=under), "")

    def kill_at(self, point: Point, place: Path) -> Expired:
        job, words = self._ask(place)
        killed = job.run(*words, under=job.killing(point, place))
        state = look(job, killed)
        again = [job.run(*words).code]
        if again == [9]:  # a DELETE may be on its way
            an_hour_later(job)
            again.append(job.run(*words).code)
        codes = [
            json.loads(path.read_text())["short_code"] for path in job.terminal.here.glob("*.json")
        ]
        deletes = [
            sum(each.method == "DELETE" and code in each.target for each in job.service.seen())
            for code in codes
        ]
        with client_of(job) as client:
            is_over = not list(client.iter_requests())
        return Expired(killed.code, tuple(again), max(deletes), [], is_over, state)

    def _ask(self, place: Path) -> tuple[InProcess, tuple[str, ...]]:
        job = InProcess(place, self.service)
        for number in range(2):
            assert (
                job.run(
                    "request", "-a", "Password", "--name", "twin", "--receipt", f"{number}.json"
                ).code
                == 0
            )
        return job, ("requests", "expire", "--name", "tw*", "--yes")
