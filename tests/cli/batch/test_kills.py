"""A run that is killed at any step: the next one goes on, and nothing happens twice or is lost.

A message whose channel was called may have been sent. It is not sent again: its row is blocked, and
says so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.batch.killing import KillSwitch
from cli.batch.outside import Killed, look
from cli.batch.request_batch import FILE as REQUESTS
from cli.batch.request_batch import NOTIFY
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND
from cli.batch.stories import ROWS, STORIES, check, tell
from cli.batch.world import BatchWorld
from cli.reached import assert_reached
from sealpipe.batch.engine.actions import Verb


def count_steps(folder: Path, file: str, story: int) -> int:
    world, path = begin(folder, file)
    tell(world, path, story)
    switch = KillSwitch()
    with switch.watching(world):
        world.run(path)
    world.close()
    return len(switch.steps)


def begin(folder: Path, file: str) -> tuple[BatchWorld, Path]:
    folder.mkdir()
    world = BatchWorld(folder)
    return world, world.write(file, ROWS)


@pytest.mark.parametrize("story", [0, 1, 2], ids=STORIES)
def test_a_request_survives_a_kill_at_every_step(
    tmp_path: Path, story: int, *, is_update: bool
) -> None:
    steps = count_steps(tmp_path / "0", REQUESTS, story)
    assert steps > 15
    found = []
    for at in range(1, steps + 1):
        world, path = begin(tmp_path / str(at), REQUESTS)
        tell(world, path, story)
        switch = KillSwitch(at)
        with switch.watching(world):
            world.run(path)
        found.append(look(world))
        try:
            check(world, path, story)
            assert len(world.all_requests()) == 1
            assert len(world.active_requests()) == (story != 2)
        except AssertionError as error:
            error.add_note(f"killed at step {at}, {switch.steps[-1]}, after {switch.steps[-6:-1]}")
            raise
        world.close()
    assert_reached(f"batch of requests, {STORIES[story]}", found, is_update=is_update)


def test_collecting_by_hand_survives_a_kill_at_every_step(
    tmp_path: Path, *, is_update: bool
) -> None:
    """The command is killed; the next run goes on where it was."""
    found, at = [], 0
    while True:
        at += 1
        world, path = begin(tmp_path / str(at), REQUESTS)
        tell(world, path, 2)
        switch = KillSwitch(at)
        with switch.watching(world):
            world.act(path, "collect", "acme")
        found.append(look(world))
        try:
            check(world, path, 2)
            assert len(world.all_requests()) == 1
        except AssertionError as error:
            error.add_note(f"killed at step {at}, {switch.steps[-1]}, after {switch.steps[-6:-1]}")
            raise
        world.close()
        if len(switch.steps) < at:
            break
    assert at > 15
    assert_reached("batch of requests, collecting by hand", found, is_update=is_update)


@pytest.mark.parametrize("story", [0, 1], ids=STORIES[:2])
def test_a_share_survives_a_kill_at_every_step(
    tmp_path: Path, story: int, *, is_update: bool
) -> None:
    steps = count_steps(tmp_path / "0", SHARES + REMIND, story)
    assert steps > 15
    found = []
    for at in range(1, steps + 1):
        world, path = begin(tmp_path / str(at), SHARES + REMIND)
        tell(world, path, story)
        switch = KillSwitch(at)
        with switch.watching(world):
            world.run(path)
        found.append(look(world))
        try:
            check(world, path, story)
            assert len(world.all_shares()) == 1
        except AssertionError as error:
            error.add_note(f"killed at step {at}, {switch.steps[-1]}, after {switch.steps[-6:-1]}")
            raise
        world.close()
    assert_reached(f"batch of shares, {STORIES[story]}", found, is_update=is_update)


@pytest.mark.parametrize("verb", ["cancel", "reissue"])
@pytest.mark.parametrize("file", [REQUESTS, SHARES + REMIND], ids=["request", "share"])
def test_what_is_asked_for_a_row_that_is_gone_survives_a_kill_at_every_step(
    tmp_path: Path, file: str, verb: Verb, *, is_update: bool
) -> None:
    """The next run of a file that no longer has the row goes on with what was recorded; else the
    command, once more.
    """
    steps, _ = kill_action(tmp_path / "0", file, verb, 0)
    assert steps >= 6
    found = [kill_action(tmp_path / str(at), file, verb, at)[1] for at in range(1, steps + 1)]
    kind = "requests" if file == REQUESTS else "shares"
    assert_reached(f"batch of {kind}, {verb} of a row that is gone", found, is_update=is_update)


def kill_action(folder: Path, file: str, verb: Verb, at: int) -> tuple[int, Killed]:
    """Kill an action by hand at a step (0: never), and see how it ends.

    Returns the number of its steps.
    """
    world, path = begin(folder, file)
    world.run(path)
    world.write(file, [{"name": "bolt", "system": "CRM", "to": "bolt.example"}])
    world.run(path)
    switch = KillSwitch(at)
    with switch.watching(world):
        world.act(path, verb, "acme")
    killed = look(world)
    try:
        check_ending(world, path, verb)
    except AssertionError as error:
        error.add_note(f"killed at step {at}, {switch.steps[-1]}, after {switch.steps[-6:-1]}")
        raise
    world.close()
    return len(switch.steps), killed


def check_ending(world: BatchWorld, path: Path, verb: Verb) -> None:
    """After the next run, and an hour later another (rule D): what was out has ended, and no DELETE
    was sent twice.
    """
    world.wait(600)
    world.run(path)
    world.wait(2 * 3600)
    world.run(path)
    if world.states(path)["acme"] == "waiting" and world.rows(path)["acme"].generation == 1:
        world.act(path, verb, "acme")  # killed before anything was recorded
    kind = "requests" if world.all_requests() else "shares"
    states, progress = world.states(path), world.progress(path, "acme")
    if states["acme"] == "blocked":
        assert (verb, bool(progress.unclear)) == ("reissue", True), progress
    else:
        assert states["acme"] == {"cancel": "cancelled", "reissue": "waiting"}[verb], progress
    live = [row for row in world._list(kind) if row["ended_at"] is None]
    assert len(live) == {"cancel": 1, "reissue": 2}[verb]
    if kind == "requests":
        assert len(world.all_requests()) == len(live) + 1, "a second DELETE destroys"
    assert len(world.messages("acme.example")) <= {"cancel": 1, "reissue": 2}[verb]
    assert world.run(path).changes == [], "and then nothing is left to do"


def test_news_survive_a_kill_at_every_step(tmp_path: Path, *, is_update: bool) -> None:
    """Each change is told once; or the message that may have arrived is called unclear."""
    world, path = begin(tmp_path / "0", REQUESTS + NOTIFY)
    switch = KillSwitch()
    with switch.watching(world):
        world.run(path)
    world.close()
    first = switch.steps.index("before the plugin team")
    found = []
    for at in (first - 1, first, first + 1, first + 2, first + 3):
        world, path = begin(tmp_path / str(at), REQUESTS + NOTIFY)
        killed = KillSwitch(at)
        with killed.watching(world):
            world.run(path)
        found.append(look(world))
        world.wait(600)
        warnings = world.run(path).warnings
        told = [message.text.reveal() for message in world.messages("team")]
        number = sum("1 row delivered" in text for text in told)
        assert number == 1 or (number == 0 and "may not have reached" in warnings[0]), (
            at,
            killed.steps[-1],
            told,
        )
        assert world.run(path).warnings == ()
        world.close()
    assert_reached("batch, news", found, is_update=is_update)
