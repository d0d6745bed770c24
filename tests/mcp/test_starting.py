"""A server starts hardly later than the SDK is imported, and what is imported for it, no other
command imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.commands import SEALPIPE
from support.job import Job

MARGIN = 0.7
"""Most seconds of CPU time that a start may take beyond importing the SDK."""
SDK = (sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio")


def spend(words: Sequence[str | Path], job: Job) -> float:
    """Run a program whose stdin is empty; return its CPU time in seconds, that of the better of two
    runs.
    """
    spent = []
    for _ in range(2):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, env=job.terminal.with_environ({})
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        spent.append(used.ru_utime + used.ru_stime)
    return min(spent)


def test_a_start_takes_little_more_than_importing_the_sdk(job: Job) -> None:
    assert spend([*SEALPIPE, "mcp"], job) < spend(SDK, job) + MARGIN


@pytest.mark.parametrize("words", [["--help"], ["mcp", "--help"], ["shares", "list"]], ids=" ".join)
def test_nothing_else_imports_the_sdk(words: list[str], job: Job) -> None:
    program = (
        f"import sys; from sealpipe.cli.main import run; run({words!r}); print(*sys.modules, "
        "file=sys.stderr)"
    )
    loaded = job.terminal.run([sys.executable, "-c", program]).err.split()
    assert "sealpipe.cli.main" in loaded
    assert not {"mcp", "mcp_types", "uvicorn", "starlette", "sealpipe.mcp"} & set(loaded)
