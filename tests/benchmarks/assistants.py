"""What the local MCP server costs: its start, compared with importing the SDK, and what it takes
while nobody calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import SEALPIPE, Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.ports import free_port

IMPORT = "import mcp.server.lowlevel, mcp.server.stdio"
MARGIN = 700
"""Most milliseconds of wall time that a start may take beyond importing the SDK."""


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    asking = bench.python("asking_tools.py")
    start, sdk = (
        Command([*asking, "0", "0", SEALPIPE, "mcp"], {}),
        Command([sys.executable, "-c", IMPORT], {}),
    )
    smallest = Command([*asking, "0", "0", *bench.python("mcp_server.py")], {})
    yield bench.timed(
        "mcp-start-cpu",
        "`sealpipe mcp` to its list of tools; importing the official SDK",
        start,
        sdk,
    )
    yield bench.timed(
        "mcp-start-sdk-cpu", "the same; the smallest server by the SDK", start, smallest
    )
    walls = [(bench.meter.wall(start), bench.meter.wall(sdk)) for _ in range(bench.runs)]
    beyond = Pair.of([mine - theirs for mine, theirs in walls], [theirs for _, theirs in walls])
    what = "wall time of that start beyond the import; the import"
    yield Row("mcp-start-wall", what, "ms", beyond, MARGIN, bounds_ours=True)
    if sys.platform == "linux":
        yield from _list_idle(bench, "mcp-idle", "`sealpipe mcp`", (0, 0))
        yield from _list_idle(
            bench, "mcp-idle-http", "`sealpipe mcp --http`", (free_port(), free_port())
        )


def _list_idle(bench: Bench, name: str, what: str, ports: tuple[int, int]) -> Iterator[Row]:
    """How often servers wake in a minute without a call, and their CPU time.

    A port of 0 is stdin and stdout.
    """
    ours, theirs = ports
    commands = (
        [SEALPIPE, "mcp", *(["--http", f"127.0.0.1:{ours}"] if ours else [])],
        bench.python("mcp_server.py", *([str(theirs)] if theirs else [])),
    )
    seconds = "0.5" if bench.short else "60"
    words = [
        bench.python("asking_tools.py", str(port), seconds, *each)
        for port, each in zip(ports, commands, strict=True)
    ]
    found = [json.loads(bench.meter.run(Command(each, {})).out) for each in words]
    wakes, spent = zip(*found, strict=True)
    yield _compare(
        f"{name}-wakes", f"{what}, a minute without a call; the smallest server", "wakes", *wakes
    )
    yield _compare(f"{name}-cpu", "the same in CPU time", "ms CPU", *(each / 1e6 for each in spent))


def _compare(name: str, what: str, unit: str, ours: float, theirs: float) -> Row:
    return Row(name, what, unit, Pair(ours, theirs, ours / theirs if theirs else float(bool(ours))))
