"""What it costs to start: `--version` and `--help`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import twins
from bench import SEALPIPE, Bench
from measuring import Command
from table import Row


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    sealpipe, nothing = twins.make(bench.folder / "twins")
    version, idle = Command([sealpipe, "--version"], {}), Command([nothing, "--version"], {})
    assert bench.meter.run(version).out.startswith("sealpipe ")
    assert bench.meter.run(idle).out == ""
    yield bench.counted("version", "`sealpipe --version`; the same console script around `pass`", version, idle, 1.1)
    usage, click = Command([SEALPIPE, "--help"], {}), Command([sys.executable, "-c", "import click"], {})
    assert "share" in bench.meter.run(usage).out
    bench.meter.run(click)
    yield bench.counted("help", "`sealpipe --help`; importing click", usage, click, 1.5)
