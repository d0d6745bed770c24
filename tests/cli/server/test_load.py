"""A service of one's own under load: `tests/endurance/server_load.py` for a few seconds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "endurance" / "server_load.py"


def test_every_call_of_a_load_is_answered_as_it_should_be(
    record_property: Callable[[str, object], None],
) -> None:
    options = ["--workers", "2", "--callers", "4", "--seconds", "0.3", "--rounds", "1"]
    more = ["--stored", "2000", "--soak", "2"]
    command = [sys.executable, "-P", str(SCRIPT), *options, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("creates, 1 key", "creates, 50 keys", "opens", "soak: memory"):
        assert f"\n{what}" in done.stdout
    record_property("figure", f"load of a server: {done.stdout.splitlines()[-4]}")
