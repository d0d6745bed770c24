"""Processes of their own at a store (`racing`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from support.parts import ROOT


def start(address: str, what: str, code: str, threads: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "service.database.racing", address, what, code, str(threads)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )


def race(address: str, what: str, code: str, threads: int, processes: int = 4) -> list[object]:
    """What came of it in all threads of all processes, which begin together."""
    started = [start(address, what, code, threads) for _ in range(processes)]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    written = [each.communicate(timeout=60)[0] for each in started]
    assert [each.returncode for each in started] == [0] * processes
    return [result for text in written for result in json.loads(text)]
