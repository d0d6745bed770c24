"""`sealpipe request --receipt` killed at one system call after another: after `resume`, one request and one link.

Every call: tests/endurance/message_sweep.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.request.sweep import KEYS, Asking
from sealpipe_rehearsal.running_service import RunningService
from support.sweep import spread

SHORT = 14


@pytest.mark.parametrize("key", KEYS)
def test_killed_at_any_system_call_there_is_one_request_one_link_and_one_receipt(
    service: RunningService, tmp_path: Path, key: str
) -> None:
    asking = Asking(service, KEYS[key])
    chosen = spread(asking.points(tmp_path / "traced"), SHORT)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda point: asking.kill_at(point, tmp_path / str(point).replace(" ", "-")), chosen))
    assert {f"{each.point} {each.point.text[:60]}": each.wrong() for each in found if each.wrong()} == {}
    # The sweep went all the way: from nothing made, over an entry that is listed, to the command surviving.
    assert found[0].requests == []
    assert any(each.listed and each.requests for each in found)
    assert any(each.listed and not each.requests for each in found)
    assert (found[-1].code, found[-1].listed) == (0, "")
