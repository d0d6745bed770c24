"""Every command killed at each of its steps, in this process: then `resume`, or the same again,
makes one of it.

And the kills reach the states that are listed in `tests/cli/kill_states/`. The same by SIGKILL at
system calls: test_commands.py beside it, a few for each command; tests/endurance, all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.kills import every_step
from cli.kills.every_step import COPIES, REQUESTS, SHARES, UNREADABLE
from cli.reached import assert_reached
from sealpipe_rehearsal.running_service import RunningService


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("resuming", [False, True], ids=["share", "resume"])
def test_one_share_with_one_link_or_nothing(
    kind: str, service: RunningService, tmp_path: Path, *, resuming: bool, is_update: bool
) -> None:
    found = every_step.share(kind, service, tmp_path, resuming=resuming)
    assert_reached(f"{'resume' if resuming else 'share'}, {kind}", found, is_update=is_update)


@pytest.mark.parametrize("key", REQUESTS)
def test_one_request_with_its_link_its_receipt_and_its_seed_or_nothing(
    key: str, service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    assert_reached(
        f"request, {key}", every_step.request(key, service, tmp_path), is_update=is_update
    )


@pytest.mark.parametrize(
    "to_file", [False, True], ids=["the link to a receiver", "the link to a file"]
)
def test_every_message_once_and_again_only_on_demand(
    service: RunningService, tmp_path: Path, *, to_file: bool, is_update: bool
) -> None:
    found = every_step.delivery(service, tmp_path, to_file=to_file)
    assert_reached(
        f"delivery, the link to a {'file' if to_file else 'receiver'}", found, is_update=is_update
    )


def test_every_reminder_once_and_again_only_on_demand(
    service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    assert_reached("reminder", every_step.reminder(service, tmp_path), is_update=is_update)


@pytest.mark.parametrize("kind", ["two sinks", "folders", UNREADABLE])
def test_every_submission_stored_once_and_none_lost(
    kind: str, service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    found = every_step.collect(kind, service, tmp_path, elsewhere=kind == "folders")
    assert_reached(f"collect, {kind}", found, is_update=is_update)


def test_every_submission_stored_once_also_where_another_machine_goes_on(
    service: RunningService, tmp_path: Path
) -> None:
    every_step.collect("two sinks", service, tmp_path, elsewhere=True)


def test_one_delete_at_most_of_each_of_several(
    service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    found = every_step.expire(service, tmp_path, by_name=True)
    assert_reached("expire, several by their name", found, is_update=is_update)


def test_one_delete_at_most_and_every_submission_kept(
    service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    assert_reached("expire", every_step.expire(service, tmp_path), is_update=is_update)


@pytest.mark.parametrize("kind", COPIES)
def test_one_new_value_in_both_stores(
    kind: str, service: RunningService, tmp_path: Path, *, is_update: bool
) -> None:
    assert_reached(f"copy, {kind}", every_step.copy(kind, service, tmp_path), is_update=is_update)
