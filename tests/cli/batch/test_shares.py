"""A batch of shares: each row is one share and one reader; what the service does not tell is
unknown.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cli.batch.share_batch import FILE, REMIND, opened
from cli.batch.world import DAY, BatchWorld
from sealpipe.api.operation import Operation, Response

REISSUE = '\n[reissue]\nwhen = "expired-unopened"\ntimes = 1\n'
ROWS = [{"name": name, "to": f"{name}.example"} for name in ("ann", "bob", "cid")]


def test_a_row_is_done_when_its_share_is_delivered(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    result = world.run(path)
    assert (result.exit_code, result.counts, result.next_due) == (0, {"done": 3}, None)
    assert [opened(world, row["to"]) for row in ROWS] == [200] * 3
    assert world.progress(path, "ann").outcome == "delivered"


def test_a_share_of_one_view_that_is_used_up_was_opened(world: BatchWorld) -> None:
    path = world.write(FILE + REMIND, ROWS)
    world.run(path)
    assert opened(world, "ann.example") == 200
    world.wait(DAY)
    world.run(path)
    assert world.states(path) == {"ann": "done", "bob": "waiting", "cid": "waiting"}
    assert world.progress(path, "ann").outcome == "opened"


def test_only_who_has_not_opened_is_reminded_and_with_the_same_link(world: BatchWorld) -> None:
    path = world.write(FILE + REMIND, ROWS)
    world.run(path)
    opened(world, "ann.example")
    world.wait(3 * DAY)
    world.run(path)
    assert [len(world.messages(row["to"])) for row in ROWS] == [1, 2, 2]
    first, second = world.messages("bob.example")
    assert first.secret == second.secret
    assert second.subject == "Reminder: A secret for you: For bob"
    assert opened(world, "bob.example") == 200


def test_a_share_of_many_views_tells_nothing_and_nobody_is_reminded(world: BatchWorld) -> None:
    path = world.write(FILE.replace("expires-in", "views = 3\nexpires-in") + REMIND, ROWS[:1])
    world.run(path)
    opened(world, "ann.example")
    world.wait(3 * DAY)
    world.run(path)
    assert len(world.messages("ann.example")) == 1
    world.wait(7 * DAY)
    world.run(path)
    assert world.progress(path, "ann").outcome == "unknown"
    assert world.states(path) == {"ann": "expired"}


def test_without_an_access_log_nobody_knows_of_a_share_that_expired(world: BatchWorld) -> None:
    """It may have been opened since the last look: so no new one is made by itself."""
    path = world.write(FILE + REISSUE, ROWS[:1])
    world.run(path)
    world.wait(8 * DAY)
    assert world.run(path).exit_code == 0
    assert (world.states(path), world.progress(path, "ann").outcome) == (
        {"ann": "expired"},
        "unknown",
    )
    assert len(world.messages("ann.example")) == 1


def hide_expiry(_: Operation[Any], response: Response) -> Response:
    """The service does not say when a share expires."""
    body = json.loads(response.body) if response.body else None
    if not isinstance(body, dict) or "expired_at" not in body:
        return response
    del body["expired_at"]
    return replace(response, body=json.dumps(body).encode())


def test_a_share_whose_expiry_is_not_known_may_have_ended_by_it(world: BatchWorld) -> None:
    world.after = hide_expiry
    (world.folder / "reminder.txt").write_text("{link} ends: {expires}")
    path = world.write(f'{FILE}{REMIND}message-template = "reminder.txt"\n', ROWS[:1])
    world.run(path)
    world.wait(3 * DAY)
    world.run(path)
    assert world.messages("ann.example")[-1].text.reveal().endswith(" not known")
    world.wait(5 * DAY)
    world.run(path)
    assert world.progress(path, "ann").outcome == "unknown", "it was not opened, it expired"


def test_with_an_access_log_it_ends_with_what_the_log_says(extended_world: BatchWorld) -> None:
    world = extended_world
    world.after = hide_expiry
    path = world.write(FILE + REISSUE, ROWS[:1])
    world.run(path)
    world.wait(8 * DAY)
    world.run(path)
    assert len(world.messages("ann.example")) == 2, "the first one expired unopened"
    opened(world, "ann.example")
    world.wait(DAY)
    world.run(path)
    assert world.progress(path, "ann").outcome == "opened"


def test_with_an_access_log_a_share_that_expired_unopened_is_made_anew_once(
    extended_world: BatchWorld,
) -> None:
    world = extended_world
    path = world.write(FILE + REISSUE, ROWS)
    world.run(path)
    assert opened(world, "ann.example") == 200
    world.wait(8 * DAY)
    world.run(path)
    assert world.states(path) == {"ann": "done", "bob": "waiting", "cid": "waiting"}
    assert [len(world.messages(row["to"])) for row in ROWS] == [1, 2, 2]
    assert opened(world, "bob.example") == 200
    world.wait(8 * DAY)
    world.run(path)
    assert world.states(path) == {"ann": "done", "bob": "done", "cid": "expired"}
    assert world.progress(path, "cid").outcome == "unopened"
    assert len(world.all_shares()) == 5


def test_a_plan_says_that_an_expired_share_may_be_made_anew(extended_world: BatchWorld) -> None:
    """A run looks and makes it anew at once: who approves new shares has to see that before."""
    world = extended_world
    path = world.write(FILE + REISSUE, ROWS[:2])
    world.run(path)
    assert opened(world, "ann.example") == 200
    assert world.actions(path) == {"ann": "wait", "bob": "wait"}
    world.wait(8 * DAY)
    plan = world.plan(path)
    assert {row.key: row.action for row in plan.rows} == {"ann": "reissue", "bob": "reissue"}
    world.run(path, approved=plan)
    assert world.states(path) == {"ann": "done", "bob": "waiting"}
    assert len(world.all_shares()) == 3


def test_each_share_that_is_made_anew_is_the_next_generation(extended_world: BatchWorld) -> None:
    world = extended_world
    path = world.write(FILE + REISSUE.replace("times = 1", "times = 3"), ROWS[:1])
    world.run(path)
    for generation in (2, 3, 4):
        world.wait(8 * DAY)
        world.run(path)
        assert world.rows(path)["ann"].generation == generation
    world.wait(8 * DAY)
    world.run(path)
    assert (world.states(path), len(world.all_shares())) == ({"ann": "expired"}, 4)


@pytest.mark.parametrize("verb", ["cancel", "reissue"])
def test_what_is_out_is_ended_by_hand(world: BatchWorld, verb: str) -> None:
    path = world.write(FILE + REMIND, ROWS)
    world.run(path)
    first = world.messages("ann.example")[-1]
    world.act(path, verb, "ann")  # type: ignore[arg-type]
    assert world.states(path)["ann"] == ("cancelled" if verb == "cancel" else "waiting")
    assert opened(world, "ann.example") == (410 if verb == "cancel" else 200)
    if verb == "reissue":
        assert world.messages("ann.example")[-1].short_code != first.short_code


def test_when_a_row_is_over_the_database_no_longer_has_its_link(world: BatchWorld) -> None:
    path = world.write(FILE + REMIND, ROWS[:1])
    world.run(path)
    row = world.rows(path)["ann"]
    fragment = world.messages("ann.example")[-1].secret.reveal().partition("#")[2]
    assert fragment in str([effect.content for effect in world.store.effects.list(row)])
    opened(world, "ann.example")
    world.wait(DAY)
    world.run(path)
    assert fragment not in str([effect.content for effect in world.store.effects.list(row)])
