"""What 1, 2 and 4 workers of a batch add up to on one PostgreSQL, and how much of the plan's rate
four of them use.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from batches import SHARES
from bench import SCRIPTS, SEALPIPE, Bench
from measuring import Command, Cost, Pair
from table import Row

from sealpipe_rehearsal import control_client

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.parts import Postgres, run_postgres

ROWS, SHORT_ROWS = 1_000, 60
SECONDS, SHORT_SECONDS = 60, 1
"""How long the workers that are compared work."""
DELAY, SHORT_DELAY = 2.0, 0.1
"""Seconds that the service takes for a call, so that it is not the machine that bounds a worker."""
PER_MINUTE, SHORT_PER_MINUTE = 100, 600
RATE_SECONDS = 300
"""How long the rate is measured. The service's log has 2,000 calls."""
MINUTE = 60.0


class Site:
    """A service of its own, a PostgreSQL, and one batch of shares of which nothing is out."""

    _number = 0

    def __init__(self, bench: Bench, origin: str, server: Postgres, rows: int) -> None:
        Site._number += 1
        self._bench = bench
        self._origin = origin
        self._folder = bench.folder / f"site-{Site._number}"
        self._folder.mkdir()
        self._file = self._folder / "batch.toml"
        name = f"keys-{Site._number}"
        self._file.write_text(
            SHARES.replace('"keys"', f'"{name}"').replace("file:", f"file:{self._folder}/")
        )
        (self._folder / "rows.csv").write_text(
            "\n".join(("name", *(f"n{number}" for number in range(rows)))) + "\n"
        )
        control_client.reset(origin)
        self._environ = {
            "SEALPIPE_API_KEY": control_client.register_key(origin, name="benchmark").reveal(),
            "SEALPIPE_BASE_URL": f"{origin}/v1",
            "SEALPIPE_LINK_BASE_URL": f"{origin}/s",
            "SEALPIPE_BATCH_DATABASE": "env:DATABASE",
            "DATABASE": server.address,
            "DB_PASSWORD": "canary",
        }
        self.name = name

    def begin(self, per_minute: int, delay: float = 0.0) -> None:
        """Make the tables and the batch; one row of it is shared."""
        control_client.set_account(self._origin, requests_per_minute=per_minute)
        self._run("database", "init")
        self._run("run", str(self._file), "--only", "n0")
        faults = [{"fault": "delay", "seconds": delay, "times": "always"}] if delay else []
        control_client.set_faults(self._origin, faults)

    def work(self, workers: int, seconds: int) -> list[Cost]:
        """Let so many workers work, each with a state folder of its own."""
        words = [SEALPIPE, "batch", "worker", "--for", f"{seconds}s"]
        return self._bench.meter.run_at_once(
            [Command(words, self._at(number)) for number in range(workers)]
        )

    def count_done(self) -> int:
        """How many rows are done by the workers."""
        counts: dict[str, int] = json.loads(self._run("status", self.name, "--output", "json").out)[
            "counts"
        ]
        assert counts.keys() <= {"new", "sending", "done"}, counts
        return counts.get("done", 0) - 1

    def list_calls(self) -> list[float]:
        """The moments of all calls that the service got, in seconds."""
        log = control_client.call_control_api(self._origin, "GET", "/log")["requests"]
        return sorted(datetime.fromisoformat(each["at"]).timestamp() for each in log)

    def _run(self, *words: str) -> Cost:
        return self._bench.meter.run(Command([SEALPIPE, "batch", *words], self._at(0)))

    def _at(self, number: int) -> Mapping[str, str]:
        return {**self._environ, "SEALPIPE_STATE_DIR": str(self._folder / f"state-{number}")}


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    with run_postgres() as server, _service() as origin:
        yield from _add_up(bench, server, origin)
        yield from _rate(bench, server, origin)


def _add_up(bench: Bench, server: Postgres, origin: str) -> Iterator[Row]:
    number, seconds, delay = (
        (SHORT_ROWS, SHORT_SECONDS, SHORT_DELAY) if bench.short else (ROWS, SECONDS, DELAY)
    )
    done, cpu = {}, {}
    for workers in (1, 2, 4):
        site = Site(bench, origin, server, number)
        site.begin(10**6, delay)
        costs = site.work(workers, seconds)
        done[workers] = site.count_done()
        cpu[workers] = sum(cost.cpu for cost in costs) / max(1, done[workers])
        control_client.set_faults(origin, [])
    for workers in (2, 4):
        what = (
            f"rows that {workers} workers end in {seconds} s at a service that takes {delay:g} "
            "s a call; one worker"
        )
        yield Row(f"workers-{workers}", what, "rows", Pair.of([done[workers]], [done[1]]))
        yield Row(
            f"workers-{workers}-cpu", "the same", "ms CPU each", Pair.of([cpu[workers]], [cpu[1]])
        )


def _rate(bench: Bench, server: Postgres, origin: str) -> Iterator[Row]:
    per_minute, seconds = (
        (SHORT_PER_MINUTE, SHORT_SECONDS) if bench.short else (PER_MINUTE, RATE_SECONDS)
    )
    site = Site(bench, origin, server, per_minute * (seconds + 60) // 60)
    site.begin(per_minute)
    before = len(site.list_calls())
    site.work(4, seconds)
    calls = site.list_calls()[before:]
    most = max(
        (sum(begin <= moment < begin + MINUTE for moment in calls) for begin in calls), default=0
    )
    what = f"4 workers: calls in the fullest minute; what a plan of {per_minute:,} a minute allows"
    yield Row("workers-rate", what, "calls", Pair.of([most], [per_minute]), 1.0)
    used = (len(calls) - 1) / (calls[-1] - calls[0]) * MINUTE if len(calls) > 1 else 0.0
    what = "the same: what they left of it, from their first call to their last"
    yield Row(
        "workers-rate-left",
        what,
        "calls/min",
        Pair.of([max(0, per_minute - used)], [per_minute]),
        0.1,
    )


@contextmanager
def _service() -> Iterator[str]:
    command = [sys.executable, SCRIPTS / "alone.py", "extended"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
