"""The short form of tests/endurance/server_kills.py: what was answered is there, and nothing twice,
whatever was killed meanwhile.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from support.parts import run_postgres
from support.server_kills import kill_while_serving


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_what_was_answered_is_there_after_any_kill(tmp_path: Path, store: str) -> None:
    with ExitStack() as stack:
        server = None if store == "sqlite" else stack.enter_context(run_postgres())
        figures = kill_while_serving(tmp_path / "service", server, kills=20, workers=2)
    assert figures["kills of processes"] >= 10
    assert figures["answered creates"] >= 10
