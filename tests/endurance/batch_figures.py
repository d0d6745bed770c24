"""What a batch costs and how it shares: CPU time a row, memory, the rate of four workers, and how
long a killed worker's row waits. Several checkouts are measured in turn, in one run.

Each figure is of whole processes of `sealpipe batch`, against a rehearsal service in this process
and a real PostgreSQL. CPU time a row is that of a run of `--rows` shares without that of a run in
which nothing is due; PostgreSQL's own is not in it. Other work only adds to it: of the rounds, the
least counts. Prints a Markdown table.

    python tests/endurance/batch_figures.py [--rounds 3] [--rows 300] [--many 10000] [--seconds 120]
        [--only cpu|memory|rate|killed ...] [CHECKOUT ...]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.faults import holds_before
from support.faulty import Exchange, Faulty, passes
from support.parts import ROOT, run_postgres
from support.rates import most_in_a_minute

DATABASES = ("SQLite", "PostgreSQL")
NO_LIMIT = 1_000_000
PER_MINUTE = 600
"""The rate of a plan that four workers share."""
LONGEST = 600.0
"""Seconds after which nobody waits any more for the row of a killed worker."""
SHARES = """
name = "{name}"
kind = "share"
rows = "rows.csv"
key = "name"

[share]
fields = ["Password=env:DB_PASSWORD"]
title = "For {{name}}"
expires-in = "7d"
send = ["file:{folder}/{{name}}.link"]
"""
BATCH = """
import atexit
from pathlib import Path
from sealpipe.__main__ import main

@atexit.register
def note_peak():
    status = Path("/proc/self/status").read_text()
    Path("peak").write_text(status.partition("VmHWM:")[2].split()[0])

main()
"""
"""A command that notes its most memory: the kernel tells a parent no less than its own."""
LOOP = """
import os, sys
from sealpipe import Client
names = ("api_key", "base_url", "link_base_url")
with Client(**{name: os.environ[f"SEALPIPE_{name.upper()}"] for name in names}) as client:
    for number in range(int(sys.argv[1])):
        client.share(
            ["Password=env:DB_PASSWORD"],
            title=f"For n{number}",
            expires_in="7d",
            send=[f"file:{os.getcwd()}/{sys.argv[1]}-{number}.link"],
        )
"""
_numbers = count()


@dataclass(frozen=True)
class Site:
    """Where batches are run: a service, a database server, and a folder."""

    service: RunningService
    postgres: str
    folder: Path


class Batch:
    """A batch of shares, in a folder of its own, and how a checkout's commands are run for it."""

    def __init__(self, site: Site, code: Path, database: str, rows: int) -> None:
        self.name = f"keys-{next(_numbers)}"
        self.folder = site.folder / self.name
        self.folder.mkdir()
        self.file = self.folder / "batch.toml"
        self.file.write_text(SHARES.format(name=self.name, folder=self.folder))
        names = (f"n{number}" for number in range(rows))
        (self.folder / "rows.csv").write_text("\n".join(["name", *names]) + "\n")
        self.environ = {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(str(code / each) for each in ("core", "plugins")),
            "SEALPIPE_API_KEY": control_client.register_key(
                site.service.origin, name="figures"
            ).reveal(),
            "SEALPIPE_BASE_URL": site.service.base_url,
            "SEALPIPE_LINK_BASE_URL": site.service.link_base_url,
            "SEALPIPE_STATE_DIR": str(self.folder / "state"),
            "DB_PASSWORD": "canary",
        }
        if database == "PostgreSQL":
            name = self.name.replace("-", "_")
            psql = ["psql", "-q", "-c", f"CREATE DATABASE {name}", site.postgres]
            subprocess.run(psql, check=True)
            self.environ["DATABASE"] = site.postgres.replace("/postgres?", f"/{name}?")
            self.environ["SEALPIPE_BATCH_DATABASE"] = "env:DATABASE"
            self.finish("database", "init")

    def start(
        self, *words: str, of: Sequence[str] = ("-c", BATCH, "batch"), **environ: str
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *of, *words],
            env={**self.environ, **environ},
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, *words: str, **options: Any) -> tuple[float, str]:
        """Run a command to its end: seconds of CPU, and what it printed."""
        return _await(self.start(*words, **options))

    def run(self) -> float:
        """One run: seconds of CPU."""
        cpu, out = self.finish("run", str(self.file), "--output", "json")
        assert json.loads(out)["counts"].keys() == {"done"}, out
        return cpu

    def work(self, rows: int) -> float:
        """Let a worker do all these rows but the first: seconds of CPU."""
        self.finish("run", str(self.file), "--only", "n0")
        worker = self.start("worker")
        _wait_for(lambda: len(list(self.folder.glob("*.link"))) == rows)
        worker.terminate()
        return _await(worker)[0]


def _await(process: subprocess.Popen[str]) -> tuple[float, str]:
    """Wait for the end of a process: seconds of CPU, and what it printed."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as stdout, process.stderr as stderr:
        out = stdout.read()
        err = stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, err
    return used.ru_utime + used.ru_stime, out


Figures = Iterator[tuple[str, float]]


def measure_cpu(site: Site, code: Path, options: argparse.Namespace) -> Figures:
    """Milliseconds of CPU a row, and those of the same shares without a batch."""
    for database in DATABASES:
        batch = Batch(site, code, database, options.rows)
        whole, idle = batch.run(), batch.run()
        yield f"CPU a row, {database}, ms", 1000 * (whole - idle) / options.rows
    whole, few = (
        Batch(site, code, "PostgreSQL", rows).work(rows) for rows in (options.rows + 2, 2)
    )
    yield "CPU a row of a worker, PostgreSQL, ms", 1000 * (whole - few) / options.rows
    whole, few = (batch.finish("-c", LOOP, str(rows), of=())[0] for rows in (options.rows + 1, 1))
    yield "the same by `Client` in a loop, ms", 1000 * (whole - few) / options.rows


def measure_memory(site: Site, code: Path, options: argparse.Namespace) -> Figures:
    """Most memory of a run of many rows, and of one with a tenth of them."""
    for database in DATABASES:
        for rows in (options.many // 10, options.many):
            batch = Batch(site, code, database, rows)
            batch.run()
            peak = int((batch.folder / "peak").read_text())
            yield f"memory of {rows:,} rows, {database}, MB", 1.024 * peak / 1000


def measure_rate(site: Site, code: Path, options: argparse.Namespace) -> Figures:
    """What four workers on one PostgreSQL use of the plan's rate, as the service sees it."""
    control_client.set_account(site.service.origin, "default", requests_per_minute=PER_MINUTE)
    batch = Batch(site, code, "PostgreSQL", 2 * PER_MINUTE * options.seconds // 60)
    batch.finish("run", str(batch.file), "--only", "n0")
    before = max(_list_calls(site))
    words = ("worker", "--for", f"{options.seconds}s")
    workers = [
        batch.start(*words, SEALPIPE_STATE_DIR=str(batch.folder / str(each))) for each in range(4)
    ]
    for worker in workers:
        _, err = worker.communicate()
        assert worker.returncode == 0, err
    times = [moment for moment in _list_calls(site) if moment > before]
    used = (len(times) - 1) * 60e6 / (times[-1] - times[0])
    yield f"4 workers, calls a minute of {PER_MINUTE}", used
    yield "the same, calls in the fullest minute", most_in_a_minute(times)
    control_client.set_account(site.service.origin, "default", requests_per_minute=NO_LIMIT)


def _list_calls(site: Site) -> list[int]:
    """The moments of the latest 2,000 calls, in microseconds, as the service keeps them."""
    log = control_client.call_control_api(site.service.origin, "GET", "/log")["requests"]
    return [
        round(datetime.fromisoformat(each["at"]).timestamp() * 1e6)
        for each in log
        if each["target"].startswith("/v1/")
    ]


def measure_killed(site: Site, code: Path, options: argparse.Namespace) -> Figures:
    """Seconds from the SIGKILL of a worker until another one has made what it was at."""
    del options
    batch = Batch(site, code, "PostgreSQL", 2)
    with Faulty(site.service.address) as faulty:
        batch.environ["SEALPIPE_BASE_URL"] = faulty.base_url
        batch.finish("run", str(batch.file), "--only", "n0")
        faulty.plan(then=_hold_creates)
        first = batch.start("worker")
        _wait_for(faulty.committed.is_set)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        killed_at = time.monotonic()
        faulty.mend()
        second = batch.start("worker")
        try:
            _wait_for((batch.folder / "n1.link").exists)
            yield "row of a killed worker, s", time.monotonic() - killed_at
        finally:
            second.terminate()
            second.communicate()


def _hold_creates(exchange: Exchange) -> None:
    (holds_before if exchange.received.method == "POST" else passes)(exchange)


def _wait_for(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + LONGEST
    while not is_so():
        assert time.monotonic() < ends_at
        time.sleep(0.05)


MEASURES = {
    "cpu": measure_cpu,
    "memory": measure_memory,
    "rate": measure_rate,
    "killed": measure_killed,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="times that CPU is measured")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=120, help="that four workers work")
    parser.add_argument("--only", choices=tuple(MEASURES), action="append")
    parser.add_argument("checkouts", type=Path, nargs="*", default=[ROOT], metavar="CHECKOUT")
    options = parser.parse_args()
    found: dict[str, dict[Path, list[float]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(run_postgres()).address
        site = Site(stack.enter_context(start(extended=True)), address, folder)
        control_client.set_account(site.service.origin, "default", requests_per_minute=NO_LIMIT)
        for name in options.only or MEASURES:
            for _ in range(options.rounds if name == "cpu" else 1):
                for code in options.checkouts:
                    for what, figure in MEASURES[name](site, code.resolve(), options):
                        found.setdefault(what, {}).setdefault(code, []).append(figure)
                        print(f"{code.name}: {what}: {figure:.1f}", file=sys.stderr, flush=True)
    print(f"| figure | {' | '.join(code.name for code in options.checkouts)} |")
    print(f"| --- |{' --: |' * len(options.checkouts)}")
    for what, figures in found.items():
        print(f"| {what} | {' | '.join(f'{min(each):.1f}' for each in figures.values())} |")


if __name__ == "__main__":
    main()
