"""A service of one's own, attacked from another network namespace:
`tests/endurance/namespace_attack.py` without what waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.parts import program

SCRIPT = Path(__file__).resolve().parents[2] / "endurance" / "namespace_attack.py"


def can_make_namespaces() -> bool:
    """Return whether this is root, on a machine that lets root do it."""
    name = f"sealpipe-probe-{os.getpid()}"
    words = ["unshare", "--net", "ip", "link", "add", name[:15], "type", "veth"]
    return os.geteuid() == 0 and subprocess.run(words, check=False).returncode == 0


def test_strangers_of_another_network_keep_nobody_out_and_are_nobody_else(
    record_property: Callable[[str, object], None],
) -> None:
    program("ip")
    program("haproxy")
    if not can_make_namespaces():
        pytest.skip("only root makes network namespaces, and not on every machine")
    command = [sys.executable, "-P", str(SCRIPT), "--short"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record_property("figure", f"attack from a namespace: {' '.join(done.stdout.split())}")
