"""Processes that run a batch, killed by SIGKILL: `tests/endurance/batch_kills.py` with few
kills.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.parts import find_postgres

SCRIPT = Path(__file__).resolve().parents[2] / "endurance" / "batch_kills.py"


@pytest.mark.parametrize(
    "words",
    [("sqlite-run",), ("postgres-run", "--kill-postgres"), ("postgres-worker",)],
    ids=["SQLite", "PostgreSQL, killed too", "workers"],
)
def test_nothing_happens_twice_or_is_lost(
    words: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """The script forks its machines, so it is a process of its own, without threads."""
    if not words[0].startswith("sqlite"):
        find_postgres()
    command = [
        sys.executable,
        "-P",
        str(SCRIPT),
        "--kills",
        "12",
        "--rows",
        "4",
        "--machines",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record_property("figure", f"kills of a batch on {words[0]}: {' '.join(done.stdout.split())}")
