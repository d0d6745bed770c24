"""The sweeps of kills turn red where a rule is broken, each for its own reason.

Without a break they are green: test_every_step.py beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.kills import breaks, every_step
from cli.kills.breaks import Break
from cli.reached import assert_reached
from sealpipe_rehearsal.running_service import RunningService


class Planted(NamedTuple):
    """A break, a sweep that meets it, and what that sweep says (a pattern)."""

    plant: Break
    sweep: Callable[[RunningService, Path], list[Any]]
    says: str


def share(kind: str = "to files") -> Callable[[RunningService, Path], list[Any]]:
    return lambda *where: every_step.share(kind, *where)


def request(key: str = "a fresh key") -> Callable[[RunningService, Path], list[Any]]:
    return lambda *where: every_step.request(key, *where)


def collect(kind: str) -> Callable[[RunningService, Path], list[Any]]:
    return lambda *where: every_step.collect(kind, *where)


S = (
    Planted(breaks.writes_the_entry_after_the_send, share(), "1 shares and 0 links"),
    Planted(breaks.sends_each_try_under_a_fresh_key, share(), "2 shares"),
    Planted(breaks.sends_each_try_under_a_fresh_key, share("a lost response"), "2 shares"),
    Planted(breaks.encrypts_again_when_it_resumes, share(), "resume ended with 8"),
    Planted(breaks.ends_the_entry_before_the_link_is_out, share(), "1 shares and 0 links"),
)
MESSAGES = (
    Planted(
        breaks.notes_a_message_only_when_it_is_sent,
        every_step.delivery,
        "a second message that nobody asked for",
    ),
    Planted(
        breaks.notes_a_message_only_when_it_is_sent,
        every_step.reminder,
        "resume says that all is out, and nothing is",
    ),
)
C = (
    Planted(breaks.writes_the_entry_after_the_send, request(), "requests, .* links"),
    Planted(breaks.sends_each_try_under_a_fresh_key, request(), "requests, .* links"),
    Planted(
        breaks.finds_no_request_by_its_public_key,
        request("a fresh key, all responses lost"),
        "code=9",
    ),
)
D = (
    Planted(breaks.sends_every_delete_twice, every_step.expire, "there is no request"),
    Planted(breaks.takes_an_ended_request_for_an_active_one, every_step.expire, "2 DELETEs"),
    Planted(
        breaks.notes_no_delete_before_it_is_sent,
        every_step.expire,
        "no second DELETE follows within the hour",
    ),
    Planted(breaks.keeps_no_submission, every_step.expire, "not kept once"),
)
COLLECTING = (
    Planted(breaks.keeps_no_submission, collect("two sinks"), "submissions less"),
    Planted(
        breaks.writes_sinks_after_the_next_change_at_the_service,
        collect("folders"),
        "0 places, and not each submission in one",
    ),
    Planted(
        breaks.notes_no_write_that_nobody_can_read_back,
        collect(every_step.UNREADABLE),
        "a place was written 3 times",
    ),
)
RULES = {"S": S, "messages": MESSAGES, "C": C, "D": D, "collecting": COLLECTING}


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(each, id=f"{rule}, {each.plant.__name__.replace('_', ' ')}, {each.says}")
        for rule, found in RULES.items()
        for each in found
    ],
)
def test_a_sweep_turns_red_where_a_command(
    planted: Planted, service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.plant(monkeypatch)
    with pytest.raises(AssertionError, match=planted.says):
        planted.sweep(service, tmp_path)


def test_a_list_of_states_turns_red_where_a_note_is_missing_that_no_rule_needs(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the one re-creation is made from the first one, so that `resume` makes it
    again.
    """
    breaks.forgets_the_key_of_the_one_re_creation(monkeypatch)
    found = every_step.share("a key without custody", service, tmp_path)
    with pytest.raises(AssertionError, match=r"missing:(.|\n)*then another key"):
        assert_reached("share, a key without custody", found)
