"""Processes of a service of one's own, killed by SIGKILL under load:
`tests/endurance/server_kills.py` with few kills.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.parts import find_postgres

SCRIPT = Path(__file__).resolve().parents[2] / "endurance" / "server_kills.py"


@pytest.mark.parametrize(
    "words", [("sqlite",), ("postgresql", "--kill-postgres")], ids=["SQLite", "PostgreSQL"]
)
def test_no_answered_create_is_lost_and_none_is_doubled(
    words: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    if words[0] == "postgresql":
        find_postgres()
    options = ["--kills", "16", "--workers", "2", "--callers", "3", "--store", *words]
    command = [sys.executable, "-P", str(SCRIPT), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record_property("figure", f"kills of a server on {words[0]}: {' '.join(done.stdout.split())}")
