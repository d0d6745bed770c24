"""The tests of this folder that can, once more at a server of four processes on one PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.four_processes import NOT_WITH_FOUR, SAME_IN_EACH, WITH_FOUR
from service.on_another_store import run_files

HERE = Path(__file__).parent


def test_each_file_runs_or_is_listed_with_a_reason() -> None:
    files = [file.name for file in HERE.glob("test_*.py")]
    listed = [name for name in NOT_WITH_FOUR if "::" not in name]
    assert sorted(files) == sorted([*WITH_FOUR, *listed])
    named = [*(name for name in NOT_WITH_FOUR if "::" in name), *SAME_IN_EACH]
    tests = [name.partition("[")[0].split("::") for name in named]
    assert {file for file, _ in tests} <= set(WITH_FOUR)
    for file, test in tests:
        assert f"def {test}(" in (HERE / file).read_text("utf-8"), (file, test)


@pytest.mark.timeout(600)
def test_what_is_not_listed_passes_and_what_is_listed_fails() -> None:
    """What is listed is expected to fail: the run fails if it passes, too."""
    assert " xfailed" in run_files("four", WITH_FOUR)
