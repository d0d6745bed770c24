"""What many creates cost through the clients, beside bare httpx with the same bodies."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bench import Bench
from measuring import Command, Pair
from table import Row

MOST_CPU = {"sync": 0.9, "async": 1.0}
NUMBER, SHORT_NUMBER = 1_000, 20
KINDS = ("wall", "cpu")
WAYS = {
    "sync": "`Client.create_share`, one after the other; `httpx.Client`",
    "async": "`AsyncClient.create_share`, 10 in flight; `httpx.AsyncClient`",
}


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    number = SHORT_NUMBER if bench.short else NUMBER
    for way, what in WAYS.items():
        # A service that has forgotten all, so that it does not grow from one way to the next.
        words = bench.python("creates.py", way, str(number), str(bench.runs))
        command = Command(words, bench.at(bench.other.fresh()))
        found = json.loads(bench.meter.run(command).out)
        wall, cpu = (
            Pair.of(*([run[kind] for run in found[side]] for side in ("ours", "theirs")))
            for kind in KINDS
        )
        yield Row(f"creates-{way}", f"{number:,} x {what}", "ms", wall)
        what = "the same, in CPU time of the caller"
        yield Row(f"creates-{way}-cpu", what, "ms CPU", cpu, MOST_CPU[way])
