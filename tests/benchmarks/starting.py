"""What it costs to start: `--version`, `--help`, and an answer to a shell that completes a word."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import twins
from bench import SEALPIPE, Bench
from measuring import Command, by_turns
from table import Row


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    sealpipe, nothing = twins.make(bench.folder / "twins")
    version, idle = Command([sealpipe, "--version"], {}), Command([nothing, "--version"], {})
    assert bench.meter.run(version).out.startswith("sealpipe ")
    assert bench.meter.run(idle).out == ""
    yield bench.counted(
        "version", "`sealpipe --version`; the same console script around `pass`", version, idle, 1.1
    )
    usage, click = (
        Command([SEALPIPE, "--help"], {}),
        Command([sys.executable, "-c", "import click"], {}),
    )
    assert "share" in bench.meter.run(usage).out
    bench.meter.run(click)
    yield bench.counted("help", "`sealpipe --help`; importing click", usage, click, 1.5)
    answer = Command([SEALPIPE], _completing(bench.folder / "completing"))
    assert bench.meter.run(answer).out.count("\n") == 1 + MOST
    yield bench.counted(
        "completion",
        "completing `sealpipe requests show `, 1,000 requests; importing click",
        answer,
        click,
    )
    pair = by_turns(answer, click, bench.runs, bench.meter.wall)
    yield Row("completion-wall", "the same in wall time", "ms", pair, 250, bounds_ours=True)


MOST = 200
"""How many codes an answer has at most."""


def _completing(state: Path) -> dict[str, str]:
    """The environment of an answer, where this machine knows 1,000 requests."""
    (state / "requests").mkdir(parents=True)
    for number in range(1000):
        head = {
            "schema": 1,
            "kind": "request",
            "base_url": "https://x.example",
            "short_code": f"code{number}",
        }
        (state / f"requests/{number}.jsonl").write_text(json.dumps(head) + "\n")
    line = f"sealpipe requests show --state-dir {state} "
    return {"_SEALPIPE_COMPLETE": "zsh", "_SEALPIPE_COMPLETE_LINE": line}
