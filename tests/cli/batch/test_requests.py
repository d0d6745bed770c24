"""A batch of requests from its file to the sink, by runs as short as scheduled jobs."""

from __future__ import annotations

from cli.batch.pigeons import DOWN, LOST
from cli.batch.request_batch import FILE, ROWS
from cli.batch.world import DAY, UNREACHABLE, BatchWorld, fail_with
from sealpipe.expire.request import expire_request


def test_a_request_for_each_row_is_made_delivered_collected_and_expired(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    result = world.run(path)
    assert (result.exit_code, result.counts) == (0, {"waiting": 3})
    assert [change.what for change in result.changes] == ["created", "delivered"] * 3
    assert len(world.active_requests()) == 3
    assert [len(world.messages(row["to"])) for row in ROWS] == [1, 1, 1]

    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret", "User name": "bob"})
    world.wait(DAY)
    result = world.run(path)
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}
    assert world.loft.values == {"vendors/acme": {"password": "s3cret", "user": "bob"}}
    assert len(world.active_requests()) == 2
    assert world.history(path, "acme") == ["created", "delivered", "collected"]
    assert world.progress(path, "acme").outcome == "collected"


def test_a_run_that_has_nothing_to_do_asks_nothing(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    result = world.run(path)
    assert (result.calls, result.changes) == (0, [])
    assert result.next_due is not None


def test_a_waiting_row_costs_one_call_a_look(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.wait(3600)
    world.run(path)
    looks = [asked for _, asked in world.network.log if asked.endswith("/submissions")]
    assert (len(looks), len(world.network.log)) == (3, 4), (
        "one call a row, and one for the plan's rate"
    )


def test_reminders_are_sent_when_due_and_never_after_a_submission(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    sent = []
    for _ in range(32):
        world.wait(DAY)
        world.run(path)
        sent.append([len(world.messages(row["to"])) for row in ROWS])
    assert [numbers[0] for numbers in sent] == [1] * 32
    assert [numbers[1] for numbers in sent] == [1] * 2 + [2] * 4 + [3] * 22 + [4] * 4
    assert (
        world.messages("bolt.example")[1].subject
        == "Reminder: You are asked for a secret: Access to CRM"
    )
    assert world.states(path) == {"acme": "done", "bolt": "expired", "core": "expired"}
    assert world.progress(path, "bolt").outcome == "no submission"
    assert world.history(path, "bolt") == [
        "created",
        "delivered",
        "reminded",
        "reminded",
        "reminded",
        "expired",
    ]


def test_after_a_pause_only_the_latest_reminder_is_sent(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.wait(20 * DAY)
    world.run(path)
    assert len(world.messages("acme.example")) == 2
    world.run(path)
    assert len(world.messages("acme.example")) == 2


def test_a_channel_that_is_down_for_a_day_fails_its_rows_and_delivers_later(
    world: BatchWorld,
) -> None:
    path = world.write(FILE, ROWS)
    world.loft.down["bolt.example"] = DOWN
    result = world.run(path)
    assert (result.exit_code, result.failed) == (18, 1)
    assert world.states(path) == {"acme": "waiting", "bolt": "failed", "core": "waiting"}
    progress = world.progress(path, "bolt")
    assert "the loft is closed" in progress.problem
    assert progress.remedy == "the next run sends what is left"
    del world.loft.down["bolt.example"]
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert len(world.messages("bolt.example")) == 1
    assert len(world.all_requests()) == 3


def test_a_message_that_may_be_lost_blocks_its_row_until_somebody_decides(
    world: BatchWorld,
) -> None:
    path = world.write(FILE, ROWS)
    world.loft.down["bolt.example"] = LOST
    assert world.run(path).exit_code == 18
    assert world.states(path)["bolt"] == "blocked"
    assert "sealpipe batch remind vendors bolt" in world.progress(path, "bolt").remedy
    del world.loft.down["bolt.example"]
    for _ in range(3):
        world.wait(3600)
        world.run(path)
    assert len(world.messages("bolt.example")) == 1

    (outcome,) = world.act(path, "remind", "bolt")
    assert [change.what for change in outcome.changes] == ["reminded"]
    assert len(world.messages("bolt.example")) == 2
    assert world.states(path)["bolt"] == "waiting"


def test_a_submission_shows_that_the_message_arrived(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.loft.down["bolt.example"] = LOST
    world.run(path)
    world.submit(world.code_of("bolt.example"))
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.states(path)["bolt"] == "done"
    assert world.progress(path, "bolt").problem == ""


def test_a_submission_that_cannot_be_opened_is_told_and_asked_for_again(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"), data="AA==")
    world.wait(DAY)
    assert world.run(path).exit_code == 18
    progress = world.progress(path, "acme")
    assert progress.exit_code == 13
    assert "sealpipe batch reissue vendors acme" in progress.remedy

    (outcome,) = world.act(path, "reissue", "acme")
    assert [change.what for change in outcome.changes] == ["reissued", "created", "delivered"]
    assert world.rows(path)["acme"].generation == 2
    assert len(world.active_requests()) == 3
    world.submit(world.code_of("acme.example"))
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.states(path)["acme"] == "done"


def test_cancel_expires_the_request_and_destroys_nothing(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.act(path, "cancel", "acme", "bolt")
    assert world.states(path) == {"acme": "cancelled", "bolt": "cancelled", "core": "waiting"}
    assert (len(world.active_requests()), len(world.all_requests())) == (1, 3)
    assert world.progress(path, "acme").submissions == 1
    world.wait(10 * DAY)
    world.run(path)
    assert world.loft.values == {}


def test_a_row_that_is_gone_is_left_alone_and_goes_on_when_it_is_back(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.write(FILE, ROWS[1:])
    world.wait(4 * DAY)
    world.run(path)
    assert [len(world.messages(row["to"])) for row in ROWS] == [1, 2, 2]
    assert world.actions(path)["acme"] == "wait"
    world.write(FILE, ROWS)
    world.run(path)
    assert [len(world.messages(row["to"])) for row in ROWS] == [2, 2, 2]


def test_a_row_that_changed_is_told_and_takes_effect_with_a_reissue(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.write(FILE, [{**ROWS[0], "to": "new.example"}, *ROWS[1:]])
    assert world.actions(path)["acme"] == "changed"
    world.wait(4 * DAY)
    world.run(path)
    assert (len(world.messages("acme.example")), len(world.messages("new.example"))) == (2, 0)
    world.act(path, "reissue", "acme")
    assert (len(world.messages("acme.example")), len(world.messages("new.example"))) == (2, 1)
    assert world.actions(path)["acme"] == "wait"


def test_each_request_has_a_key_of_its_own(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    keys = {world.progress(path, row["name"]).public_key for row in ROWS}
    assert len(keys) == 3


def test_whoever_submits_just_before_a_reminder_gets_none(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.wait(3 * DAY - 1800)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.wait(2400)
    world.run(path)
    assert (world.states(path), len(world.messages("acme.example"))) == ({"acme": "done"}, 1)


def test_nobody_is_reminded_of_a_link_that_works_no_more(world: BatchWorld) -> None:
    """Somebody has expired the request, at the service or with another client."""
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    expire_request(world.session(), world.code_of("acme.example"), None)
    world.wait(4 * DAY)
    world.run(path)
    assert (world.states(path), len(world.messages("acme.example"))) == ({"acme": "expired"}, 1)


def test_a_row_that_failed_is_left_alone_once_it_is_gone(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.loft.down["acme.example"] = DOWN
    world.run(path)
    del world.loft.down["acme.example"]
    world.write(FILE, ROWS[1:])
    world.wait(DAY)
    world.run(path)
    assert world.messages("acme.example") == []


def test_a_row_that_was_corrected_before_it_is_out_is_made_as_corrected(world: BatchWorld) -> None:
    path = world.write(FILE, [{**ROWS[0], "to": "wrong.example"}])
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    world.run(path)
    del world.before
    world.write(FILE, ROWS[:1])
    world.wait(DAY)
    world.run(path)
    assert (len(world.messages("wrong.example")), len(world.messages("acme.example"))) == (0, 1)
    assert world.actions(path) == {"acme": "wait"}
