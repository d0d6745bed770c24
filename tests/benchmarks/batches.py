"""What a batch costs: its shares beside the same by `Client` in a loop, its memory, and a run with
nothing to do.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from bench import SEALPIPE, Bench
from measuring import Command, Cost, Pair
from table import Row

NUMBER, SHORT_NUMBER = 10_000, 30
FEWER = 10
"""Memory is compared with a batch of so many times fewer rows."""
WAITING, SHORT_WAITING = 50, 5
SHARES = """
name = "keys"
kind = "share"
rows = "rows.csv"
key = "name"

[share]
fields = ["Password=env:DB_PASSWORD"]
title = "For {name}"
expires-in = "7d"
send = ["file:{name}.link"]
"""
REQUESTS = """
name = "vendors"
kind = "request"
rows = "rows.csv"
key = "name"

[request]
ask = ["Password"]
title = "For {name}"
expires-in = "7d"
send = ["file:{name}.link"]
"""


class Batch:
    """A batch file with its rows in a folder of its own."""

    _numbers = itertools.count()

    def __init__(self, bench: Bench, text: str, number: int) -> None:
        self.number = number
        self._bench = bench
        self._folder = bench.folder / f"batch-{next(self._numbers)}"
        self._folder.mkdir()
        self._file = self._folder / "batch.toml"
        self._file.write_text(text.replace("file:", f"file:{self._folder}/"))
        (self._folder / "rows.csv").write_text(
            "".join(f"{row}\n" for row in ("name", *map("n{}".format, range(number))))
        )
        self.environ = {
            **bench.other.fresh(),
            "SEALPIPE_STATE_DIR": str(self._folder),
            "DB_PASSWORD": "canary",
        }

    def run(self) -> tuple[Cost, int]:
        """One `batch run`: its cost, and its calls."""
        cost = self._bench.meter.run(
            Command([SEALPIPE, "batch", "run", self._file, "--output", "json"], self.environ)
        )
        told = json.loads(cost.out)
        assert sum(told["counts"].values()) == self.number
        assert told["failed"] == 0
        return cost, told["calls"]

    def loop(self) -> Cost:
        """The same shares by `Client`, at a service that has none of them."""
        self.environ |= self._bench.other.fresh()
        folder = self._folder / "loop"
        folder.mkdir()
        cost = self._bench.meter.run(
            Command(self._bench.python("shares.py", str(self.number), folder), self.environ)
        )
        assert len(list(folder.iterdir())) == self.number
        return cost


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    number = SHORT_NUMBER if bench.short else NUMBER
    batch = Batch(bench, SHARES, number)
    (whole, calls), loop = batch.run(), batch.loop()
    what = f"{number:,} shares in one `batch run`, in SQLite; by `Client` in a loop"
    yield Row(
        "batch-cpu",
        what,
        "us CPU each",
        _one(1000 * whole.cpu / number, 1000 * loop.cpu / number),
        2.0,
    )
    yield Row("batch-requests", "the same", "requests each", _one(calls / number, 1.0), 1.01)
    fewer, _ = Batch(bench, SHARES, number // FEWER).run()
    what = f"peak of the process, {number:,} rows; {number // FEWER:,}"
    yield Row("batch-memory", what, "MB", _one(whole.peak / 1e6, fewer.peak / 1e6))
    yield from _idle(bench)


def _idle(bench: Bench) -> Iterator[Row]:
    batch = Batch(bench, REQUESTS, SHORT_WAITING if bench.short else WAITING)
    batch.run()
    turns = [batch.run() for _ in range(bench.runs)]
    version = Command([SEALPIPE, "--version"], {})
    starts = [bench.meter.run(version) for _ in turns]
    what = f"`batch run` of {batch.number} waiting rows of which none is due; `sealpipe --version`"
    cpu, wall = (
        Pair.of([figure(cost) for cost, _ in turns], [figure(cost) for cost in starts])
        for figure in (lambda cost: cost.cpu, lambda cost: cost.wall)
    )
    yield Row("batch-idle-cpu", what, "ms CPU", cpu, 600, bounds_ours=True)
    yield Row("batch-idle-wall", "the same", "ms", wall, 600, bounds_ours=True)
    yield Row(
        "batch-idle-requests",
        "the same; a look at each",
        "requests",
        _one(max(calls for _, calls in turns), batch.number),
        8,
        bounds_ours=True,
    )


def _one(ours: float, theirs: float) -> Pair:
    return Pair.of([ours], [theirs])
