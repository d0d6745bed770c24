"""Killed at one system call after another while it delivers: no second message unasked for, and no link lost.

Every call: tests/endurance/message_sweep.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.deliver.sweep import Delivering
from sealpipe_rehearsal.running_service import RunningService
from support.sweep import spread

SHORT = 16


@pytest.mark.parametrize("to_file", [False, True], ids=["the link to a receiver", "the link to a file"])
def test_killed_at_any_system_call_no_message_is_sent_twice_and_none_is_lost(
    service: RunningService, tmp_path: Path, *, to_file: bool
) -> None:
    delivering = Delivering(service, to_file)
    chosen = spread(delivering.points(tmp_path / "traced"), SHORT)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda point: delivering.kill_at(point, tmp_path / str(point).replace(" ", "-")), chosen))
    assert {f"{each.point} {each.point.text[:60]}": each.wrong() for each in found if each.wrong()} == {}
    # The sweep went all the way: from nothing sent, over perhaps, to the command surviving.
    assert found[0].messages == []
    assert {each.resumed for each in found} == {0, 11}
    assert found[-1].code == 0
