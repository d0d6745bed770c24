"""What sealing and posting a large value costs, in time and in memory."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench import SEALPIPE, Bench
from measuring import Command, Cost, Pair
from table import Row

SIZE, SHORT_SIZE = 10_000_000, 1_000_000
PAYLOAD = "x payload"
SIDES = ("ours", "theirs")


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    size = SHORT_SIZE if bench.short else SIZE
    # Lines of base64, as a key file has them; never the same twice.
    text = base64.encodebytes(os.urandom(size)).decode()[:size]
    large, tiny = bench.folder / "large", bench.folder / "tiny"
    large.write_text(text)
    tiny.write_text("tiny\n")
    yield from _library(bench, large, text)
    yield from _command(bench, large, tiny, size)
    yield _to_the_service(bench, large, text)


def _library(bench: Bench, large: Path, text: str) -> Iterator[Row]:
    def told(runs: int, environ: dict[str, str]) -> dict[str, Any]:
        command = Command(bench.python("library.py", large, str(runs)), bench.at(environ))
        found: dict[str, Any] = json.loads(bench.meter.run(command).out)
        return found

    for link in told(0, bench.other.fresh())["links"]:
        bench.other.check(link, "FILE", text)
    found = told(bench.runs, bench.other.receiver())
    cpu, wall = (
        Pair.of(*([run[kind] for run in found[side]] for side in SIDES)) for kind in ("cpu", "wall")
    )
    memory = Pair.of(*([found["peak"][side] / len(text)] for side in SIDES))
    yield Row(
        "library-cpu",
        f"`Client.share(Field(...))`, {_size(text)}; the naive way",
        "ms CPU",
        cpu,
        0.4,
    )
    yield Row("library-wall", "the same", "ms", wall, 0.4)
    what = "sealing alone, both ways: what Python allocates"
    yield Row("library-memory", what, PAYLOAD, memory, 2.5, bounds_ours=True)


def _command(bench: Bench, large: Path, tiny: Path, size: int) -> Iterator[Row]:
    environ = bench.at(bench.other.receiver())
    commands = [command for file in (large, tiny) for command in _both(bench, file, environ)]
    for command in () if bench.short else commands:
        bench.meter.run(command)
    turns = [[bench.meter.run(command) for command in commands] for _ in range(bench.runs)]

    def whole(figure: Callable[[Cost], float]) -> Pair:
        return Pair.of([figure(turn[0]) for turn in turns], [figure(turn[1]) for turn in turns])

    def above_start(figure: Callable[[Cost], float]) -> Pair:
        starts = [median(figure(turn[number]) for turn in turns) for number in (2, 3)]
        ours = [figure(turn[0]) - starts[0] for turn in turns]
        return Pair.of(ours, [figure(turn[1]) - starts[1] for turn in turns])

    what = f"`sealpipe share -f file:`, {size // 1_000_000} MB, above start; the naive script"
    yield Row("large-cpu", what, "ms CPU", above_start(lambda cost: cost.cpu), 0.5)
    yield Row("large-wall", "the same", "ms", above_start(lambda cost: cost.wall), 0.5)
    memory = above_start(lambda cost: cost.peak / size)
    yield Row(
        "large-memory", "the same, peak of the process", PAYLOAD, memory, 2.5, bounds_ours=True
    )
    yield Row("large-whole-cpu", "the same, start included", "ms CPU", whole(lambda cost: cost.cpu))
    yield Row("large-whole-wall", "the same, start included", "ms", whole(lambda cost: cost.wall))


def _to_the_service(bench: Bench, large: Path, text: str) -> Row:
    turns = []
    for _ in range(bench.runs):
        # Forgotten each time, so that the service does not grow.
        commands = _both(bench, large, bench.at(bench.other.fresh()))
        turns.append([bench.meter.run(command) for command in commands])
        for cost in turns[-1]:
            bench.other.check(cost.out.strip(), "FILE", text)
    pair = Pair.of([ours.wall for ours, _ in turns], [theirs.wall for _, theirs in turns])
    return Row(
        "large-service-wall", "the same, start included, to the rehearsal service", "ms", pair
    )


def _both(bench: Bench, file: Path, environ: dict[str, str]) -> tuple[Command, Command]:
    ours = Command([SEALPIPE, "share", "-f", f"FILE=file:{file}"], environ)
    return ours, Command(bench.python("large.py", file), environ)


def _size(text: str) -> str:
    return f"{len(text) // 1_000_000} MB"
