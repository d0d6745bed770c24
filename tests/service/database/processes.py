"""Processes of their own at a store (`racing`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from support.parts import ROOT


def start(
    address: str, what: str, code: str, threads: int = 1, processes: int = 1
) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "service.database.racing"]
    words += [address, what, code, str(threads), str(processes)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


def race(address: str, what: str, code: str, threads: int, processes: int = 4) -> list[object]:
    """What came of it in all threads of all processes, which begin together."""
    with start(address, what, code, threads, processes) as started:
        written, _ = started.communicate(timeout=60)
    assert started.returncode == 0
    found: list[object] = json.loads(written)
    return found
