"""How often a tool may be used in an hour, whatever happens to servers and clocks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpipe.errors import PolicyError, StateError
from sealpipe.mcp import call_limit
from sealpipe.mcp.call_limit import HOUR, count_left, take

START = 1_800_000_000.0
TAKE = (
    "import os, sys, pathlib; from sealpipe.mcp.call_limit import take; "
    "take(pathlib.Path(sys.argv[1]), 'share', 4)"
)


class Clock:
    """The clock of this machine, which a test sets."""

    def __init__(self) -> None:
        self.now = START

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(call_limit, "time", clock)
    return clock


def is_taken(folder: Path, most: int | None = 2, tool: str = "share") -> bool:
    try:
        take(folder, tool, most)
    except PolicyError:
        return False
    return True


def test_the_hour_slides(tmp_path: Path, clock: Clock) -> None:
    taken = []
    for minutes in (0, 30, 59, 60, 61, 89, 90, 119, 120):
        clock.now = START + minutes * 60
        taken.append(is_taken(tmp_path))
    assert taken == [True, True, False, True, False, False, True, False, True]


def test_a_refusal_says_how_many_and_until_when(tmp_path: Path, clock: Clock) -> None:
    take(tmp_path, "share", 1)
    clock.now += 60
    with pytest.raises(PolicyError, match="share: the policy allows 1 call an hour") as caught:
        take(tmp_path, "share", 1)
    assert "call it again after 2027-01-15T09:00:01Z" in caught.value.remedy
    take(tmp_path, "share", 2)
    with pytest.raises(PolicyError, match="share: the policy allows 2 calls an hour"):
        take(tmp_path, "share", 2)


def test_each_tool_counts_for_itself_and_some_without_end(tmp_path: Path) -> None:
    assert [is_taken(tmp_path, 1, tool) for tool in ("share", "run", "share")] == [
        True,
        True,
        False,
    ]
    assert all(is_taken(tmp_path, None, "share") for _ in range(5))
    assert [count_left(tmp_path, tool, 3) for tool in ("share", "run", "list")] == [2, 2, 3]
    assert count_left(tmp_path, "share", None) is None
    assert (tmp_path / "hourly.json").stat().st_mode & 0o777 == 0o600


def test_a_policy_that_allows_fewer_holds_at_once(tmp_path: Path) -> None:
    assert all(is_taken(tmp_path, 5) for _ in range(5))
    assert not is_taken(tmp_path, 3)
    assert count_left(tmp_path, "share", 3) == 0
    assert is_taken(tmp_path, 6)


def test_a_clock_that_is_set_back_gives_no_call_back(tmp_path: Path, clock: Clock) -> None:
    assert [is_taken(tmp_path) for _ in range(2)] == [True, True]
    for back in (86400, 30 * 86400):
        clock.now = START - back
        assert not is_taken(tmp_path)
        clock.now += HOUR - 1
        assert not is_taken(tmp_path)
    clock.now += 1  # an hour later, it has opened: a wrong clock blocks nobody for a month
    assert is_taken(tmp_path)


@given(st.lists(st.tuples(st.integers(0, 2 * HOUR), st.integers(0, 10 * HOUR)), max_size=12))
@settings(max_examples=30)
def test_no_hour_has_more_calls_however_the_clock_goes_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    """`steps` are seconds that pass, and seconds by which the clock is then set back."""
    folder, clock, true_time, taken = tmp_path_factory.mktemp("hourly"), Clock(), 0, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_limit, "time", clock)
        for passed, back in steps:
            true_time += passed
            clock.now += passed - back
            taken += [true_time] * is_taken(folder)
    assert all(sum(at - HOUR < each <= at for each in taken) <= 2 for at in taken)


def test_servers_that_count_at_once_share_one_limit(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: is_taken(tmp_path, 5), range(12))) == 5


@pytest.mark.parametrize("end", ["", "; os.kill(os.getpid(), 9)"])
def test_another_process_that_was_killed_has_counted(tmp_path: Path, end: str) -> None:
    """The kill comes after the count and before the effect: the call is lost, and never made for
    nothing.
    """
    assert is_taken(tmp_path, 4)
    ran = subprocess.run([sys.executable, "-c", TAKE + end, tmp_path], check=False)
    assert ran.returncode == (-signal.SIGKILL if end else 0)
    assert count_left(tmp_path, "share", 4) == 2


def test_a_kill_while_it_is_written_leaves_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **_folders: object) -> None:
        raise KeyboardInterrupt

    take(tmp_path, "share", 2)
    monkeypatch.setattr("os.rename", kill)
    with pytest.raises(KeyboardInterrupt):
        take(tmp_path, "share", 2)
    monkeypatch.undo()
    assert count_left(tmp_path, "share", 2) == 1
    assert is_taken(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["hourly.json"]


def _link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"\xff{}"),
        lambda file: file.write_bytes(b"[" * 100_000),
        lambda file: file.write_text('{"schema": 1, "calls": []}'),
        lambda file: file.write_text('{"schema": 2, "calls": {}}'),
        lambda file: file.write_text('{"schema": 1, "calls": {"share": [1800000000, NaN]}}'),
        lambda file: file.write_text('{"schema": 1, "calls": {"share": ["never"]}}'),
        lambda file: file.write_text(json.dumps({"schema": 1, "calls": {"share": [1] * 400_000}})),
        _link,
    ],
)
def test_a_file_that_cannot_be_believed_opens_nothing(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    take(tmp_path, "share", 2)
    spoil(tmp_path / "hourly.json")
    with pytest.raises(StateError) as caught:
        take(tmp_path, "share", 2)
    assert caught.value.remedy
