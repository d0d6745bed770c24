"""Random schedules against rule D, a short form of tests/endurance/rule_d.py; and that the
schedules do notice.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.expire_request.rule_d import Schedule, played
from sealpipe.api.operation import Operation, Resend
from sealpipe.api.requests import Submissions
from sealpipe.budget import Budget, call
from sealpipe.expire import request

BLOCKS = 10
A_BLOCK = 50


def block(number: int, folder: Path) -> list[Schedule]:
    seeds = range(1_000_000 + number * A_BLOCK, 1_000_000 + (number + 1) * A_BLOCK)
    return [played(seed, folder / str(seed) / "requests") for seed in seeds]


@pytest.mark.parametrize("number", range(BLOCKS))
def test_nothing_is_destroyed_and_everything_is_kept_in_random_schedules(
    number: int, tmp_path: Path
) -> None:
    found = block(number, tmp_path)
    assert {schedule.seed: schedule.wrong for schedule in found if schedule.wrong} == {}
    # They do meet what they are about.
    ends = Counter(
        type(command.ended).__name__ for schedule in found for command in schedule.commands
    )
    assert ends["EndedRequest"] > A_BLOCK
    assert ends["NoneType"] > 5
    assert sum(command.deletes for schedule in found for command in schedule.commands) > 20


def breaks(promise: str, folder: Path) -> bool:
    """Whether one schedule of many breaks that promise."""
    return any(
        wrong.startswith(promise)
        for seed in range(1000)
        for wrong in played(seed, folder / str(seed) / "requests").wrong
    )


def test_a_schedule_is_played_again_from_its_seed(tmp_path: Path) -> None:
    def told(schedule: Schedule) -> list[tuple[str, int, str]]:
        return [
            (each.kind, each.deletes, repr(each.ended).replace(str(schedule.folder), ""))
            for each in schedule.commands
        ]

    first, again = (block(0, tmp_path / run) for run in ("first", "again"))
    assert [told(each) for each in first] == [told(each) for each in again]


def test_a_command_that_fails_by_a_bug_fails_the_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sealpipe.state.ledger.Ledger.keep", bug)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        block(0, tmp_path)
    assert threading.active_count() == before


def test_the_schedules_notice_a_delete_that_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def repeated(operation: Operation[Any], budget: Budget, **_: int) -> Any:
        return call(replace(operation, resend=Resend.REPEATABLE), budget)

    monkeypatch.setattr(request, "call", repeated)
    assert breaks("one expire sent 2 DELETEs", tmp_path)


def test_the_schedules_notice_a_second_delete_that_follows_too_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "GRACE", timedelta(0))
    assert breaks("destroyed without purge", tmp_path)


def test_the_schedules_notice_a_delete_to_a_request_about_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "MARGIN", timedelta(0))
    assert breaks("destroyed without purge", tmp_path)


def test_the_schedules_notice_a_delete_before_anything_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealpipe.state.ledger.Ledger.keep", lambda *_: None)
    assert breaks("a DELETE before everything that was read was kept", tmp_path)


def test_the_schedules_notice_late_submissions_that_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_again(_: request.RequestExpiry) -> Submissions:
        return Submissions((), 0, 0)

    monkeypatch.setattr(request.RequestExpiry, "_keep_last_submissions", not_again)
    assert breaks("expire: expired", tmp_path)
