"""The states in which kills land: one short sweep of each rule reaches those that are listed; and
what a list notices.

All sweeps: test_every_step.py beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import reached
from cli.kills import every_step
from cli.outside import State
from cli.reached import assert_reached, name_list
from sealpipe_rehearsal.running_service import RunningService


@pytest.mark.parametrize(
    ("title", "sweep"),
    [
        ("share, to files", lambda *where: every_step.share("to files", *where)),
        ("request, a fresh key", lambda *where: every_step.request("a fresh key", *where)),
        ("expire", every_step.expire),
    ],
    ids=["rule S", "rule C", "rule D"],
)
def test_kills_reach_the_states_that_are_listed(
    title: str,
    sweep: Callable[[RunningService, Path], list[Any]],
    service: RunningService,
    tmp_path: Path,
) -> None:
    assert_reached(title, sweep(service, tmp_path))


@dataclass
class Kill:
    state: State


BEFORE, SENT, TOLD = (
    Kill(()),
    Kill(("service a share",)),
    Kill(("service a share", "printed <share link>")),
)


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of three states."""
    monkeypatch.setattr(reached, "LISTS", tmp_path)
    assert_reached("share", [BEFORE, SENT, SENT, TOLD], is_update=True)


@pytest.mark.usefixtures("listed")
def test_the_order_and_the_number_of_kills_do_not_matter() -> None:
    assert_reached("share", [TOLD, SENT, BEFORE, BEFORE])


@pytest.mark.usefixtures("listed")
def test_a_state_that_no_kill_reaches_any_more_is_named() -> None:
    with pytest.raises(
        AssertionError,
        match="share: 1 states are no longer reached, 0 are new\nmissing:\n  nothing\n",
    ):
        assert_reached("share", [SENT, TOLD])


@pytest.mark.usefixtures("listed")
def test_a_state_that_is_not_listed_is_named() -> None:
    with pytest.raises(AssertionError, match="1 are new\nnew:\n  printed <share link>\n"):
        assert_reached("share", [BEFORE, SENT, TOLD, Kill(("printed <share link>",))])


KINDS = ("requests", "shares")


def test_every_list_is_that_of_a_sweep() -> None:
    """One that nobody compares would say nothing."""
    shares = {f"{command}, {kind}" for command in ("share", "resume") for kind in every_step.SHARES}
    requests = {f"request, {key}" for key in every_step.REQUESTS} | {
        "expire",
        "expire, several by their name",
    }
    sent = {"delivery, the link to a receiver", "delivery, the link to a file", "reminder"}
    collected = {f"collect, {kind}" for kind in every_step.PLACES}
    batches = {
        f"batch of {kind}, {verb} of a row that is gone"
        for kind in KINDS
        for verb in ("cancel", "reissue")
    }
    batches |= {
        f"batch of {kind}, {story}" for kind in KINDS for story in ("creating", "reminding")
    }
    batches |= {f"batch of requests, collecting{how}" for how in ("", " by hand")} | {"batch, news"}
    copied = {f"copy, {kind}" for kind in every_step.COPIES}
    titles = batches | shares | requests | sent | collected | copied
    assert {path.name for path in reached.LISTS.iterdir()} == set(map(name_list, titles))
