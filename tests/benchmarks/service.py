"""What the rehearsal service costs with many shares stored: creates a second, memory, the first
page of a list.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from bench import SCRIPTS, Bench
from measuring import Pair
from table import Row

from sealpipe_rehearsal import control_client

FEW, SOME, MANY = 100, 1_000, 20_000
SHORT = {FEW: 5, SOME: 10, MANY: 40}
CREATES, READS = 200, 100
"""How many calls are one figure."""
FLAT = 1.15

BODY = json.dumps(
    {
        "encryption_type": "e2ee-aes256-gcm",
        "data": base64.b64encode(os.urandom(300)).decode(),
        "access_token": "t" * 43,
    }
).encode()


class Stored:
    """A service of its own with so many shares stored, and one connection to it.

    A context manager.
    """

    def __init__(self, shares: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, SCRIPTS / "alone.py"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        origin = self._process.stdout.readline().strip()
        credential = (
            control_client.register_key(origin, name="benchmark").reveal().rpartition(".")[0]
        )
        control_client.set_account(origin, requests_per_minute=10**6)
        self._http = http.client.HTTPConnection(origin.removeprefix("http://"))
        self._headers = {
            "Authorization": f"Bearer {credential}",
            "Content-Type": "application/json",
        }
        self._numbers = itertools.count()
        self.empty = self.memory()
        for _ in range(shares):
            self.create()

    def create(self) -> None:
        """Store one more."""
        self._call("POST", "/v1/shares", BODY, {"Idempotency-Key": str(next(self._numbers))}, 201)

    def first_page(self) -> int:
        """Read a full first page; how many shares there are."""
        told = self._call("GET", "/v1/shares?limit=100", None, {}, 200)
        total: int = told["pagination"]["total"]
        assert len(told["shares"]) == min(total, 100)
        return total

    def memory(self) -> float:
        """What the process has resident, in MB."""
        ps = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self._process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(ps.stdout) / 1024

    def _call(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], expected: int
    ) -> Any:
        self._http.request(method, path, body, self._headers | headers)
        answer = self._http.getresponse()
        told = json.loads(answer.read())
        assert answer.status == expected, told
        return told

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._process.terminate()
        self._process.communicate(timeout=30)


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    with contextlib.ExitStack() as stack:
        few, some, many = (
            stack.enter_context(Stored(SHORT[number] if bench.short else number))
            for number in (FEW, SOME, MANY)
        )
        yield _list(
            f"list-{SOME}",
            f"page 1 of a list, 100 of {SOME:,} shares; of {FEW}",
            some,
            few,
            bench.runs,
            FLAT,
        )
        yield _list(
            f"list-{MANY}",
            f"the same, of {MANY:,} shares; of {SOME:,}",
            many,
            some,
            bench.runs,
            FLAT,
        )
        what = f"resident, {MANY:,} shares stored; with none"
        yield Row("service-memory", what, "MB", Pair.of([many.memory()], [many.empty]))
        what = f"the service's creates a second, one connection, {MANY:,} stored; {FEW}"
        yield Row("service-creates", what, "creates/s", _by_turns(_creates, many, few, bench.runs))


def _list(
    name: str, what: str, ours: Stored, theirs: Stored, runs: int, target: float | None = None
) -> Row:
    return Row(name, what, "ms", _by_turns(_read, ours, theirs, runs), target)


def _by_turns(figure: Callable[[Stored], float], ours: Stored, theirs: Stored, runs: int) -> Pair:
    found = [(figure(ours), figure(theirs)) for _ in range(runs)]
    return Pair.of([mine for mine, _ in found], [other for _, other in found])


def _read(service: Stored) -> float:
    """Milliseconds of one read, the median of many."""
    return median(_timed(service.first_page) for _ in range(READS)) * 1000


def _creates(service: Stored) -> float:
    """Creates a second."""
    return CREATES / sum(_timed(service.create) for _ in range(CREATES))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
