"""Losses that a user causes, and others: a plan, a mail server, a scope or a key is gone for a day,
and comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.batch.pigeons import LOST
from cli.batch.request_batch import FILE, ROWS
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND
from cli.batch.world import DAY, BatchWorld, set_account
from sealpipe.api.operation import Operation, Response
from sealpipe.batch.engine.run import RunResult
from sealpipe.cli.batch_output import check_result
from sealpipe.errors import FailedRowsError
from sealpipe_service.credentials import SCOPES
from support.mailbox import Mailbox
from support.ports import silent_port

HOUR = 3600.0
NEW = [{"name": f"new{each}", "system": "CRM", "to": f"new{each}.example"} for each in range(6)]


def told(result: RunResult) -> FailedRowsError:
    """The error that `batch run` ends with."""
    with pytest.raises(FailedRowsError) as caught:
        check_result(result, detailed=False)
    assert caught.value.exit_code == 18
    return caught.value


def run_for_a_day(world: BatchWorld, path: Path, times: int = 6) -> list[RunResult]:
    """What a scheduled job does."""
    results = []
    for _ in range(times):
        world.wait(DAY / times)
        results.append(world.run(path))
    return results


# -- a plan without API access --------------------------------------------------------------------


def test_a_plan_without_api_access_for_a_day_loses_and_repeats_nothing(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.write(FILE, [*ROWS, *NEW])
    set_account(world.service, plan="none")
    world.wait(2.5 * DAY)
    results = run_for_a_day(world, path)
    error = told(results[-1])
    assert "the plan has API access" in error.remedy
    assert "the rows that are left wait for the next run" in error.message
    assert max(result.calls for result in results) <= 5, "one row of each kind, and the plan's rate"
    assert "blocked" not in world.states(path).values()
    assert len(world.loft.messages) == 3

    set_account(world.service, plan="business")
    world.wait(HOUR)
    result = world.run(path)
    assert (result.exit_code, result.stopped) == (0, None)
    assert world.states(path) == {
        "acme": "done",
        **dict.fromkeys(["bolt", "core", *(row["name"] for row in NEW)], "waiting"),
    }
    sent = [len(world.messages(row["to"])) for row in (*ROWS, *NEW)]
    assert sent == [1, 2, 2, *[1] * 6], "those who did not submit were reminded, a day late"
    assert (len(world.all_requests()), world.loft.puts) == (9, ["vendors/acme"])


def test_each_refusal_of_the_plan_leaves_shares_for_the_next_day(world: BatchWorld) -> None:
    path = world.write(SHARES + REMIND, ROWS)
    refused = Response(403, {}, b'{"success": false, "message": "no API access", "error_code": 98}')
    world.before = lambda _: refused  # type: ignore[method-assign]
    for result in run_for_a_day(world, path):
        assert "API access needs a Business or Enterprise plan" in told(result).remedy
        assert set(result.counts) <= {"failed", "new"}
    del world.before
    assert world.run(path).counts == {"waiting": 3}
    assert (len(world.all_shares()), len(world.loft.messages)) == (3, 3)


# -- a mail server that is down -------------------------------------------------------------------

MAIL = FILE.replace("pigeon:{to}", "email:{name}@{to}")


@pytest.fixture
def mailbox(world: BatchWorld, tmp_path: Path) -> Iterator[Mailbox]:
    """A real mail server, to which the batch's messages go."""
    with Mailbox(tmp_path, starttls=False, login=False) as server:
        settings = {
            "HOST": server.host,
            "PORT": str(server.port),
            "SECURITY": "none",
            "SENDER": "ci@acme.example",
        }
        world.environ = {
            f"SEALPIPE_PLUGIN_EMAIL__{name}": value for name, value in settings.items()
        }
        yield server


def recipients(mailbox: Mailbox) -> list[str]:
    return sorted(to for received in mailbox.received for to in received.recipients)


ALL = [f"{row['name']}@{row['to']}" for row in ROWS]


def test_a_mail_server_that_is_down_for_a_day_gets_each_message_once(
    world: BatchWorld, mailbox: Mailbox
) -> None:
    path = world.write(MAIL, ROWS[:1])
    up, world.environ = (
        world.environ,
        {**world.environ, "SEALPIPE_PLUGIN_EMAIL__PORT": str(silent_port())},
    )
    for result in [world.run(path), *run_for_a_day(world, path, times=2)]:
        assert result.counts == {"failed": 1}
        assert "batch status vendors" in told(result).remedy
    progress = world.progress(path, "acme")
    assert "refused" in progress.problem
    assert progress.remedy == "the next run sends what is left"
    world.environ = up
    assert world.run(path).counts == {"waiting": 1}
    assert recipients(mailbox) == ALL[:1]
    assert len(world.all_requests()) == 1
    world.run(path)
    assert recipients(mailbox) == ALL[:1]


def test_a_mail_server_that_dies_before_its_answer_blocks_and_repeats_nothing(
    world: BatchWorld, mailbox: Mailbox
) -> None:
    path = world.write(MAIL, ROWS)
    mailbox.answers.breaks.add("data")
    assert world.run(path).counts == {"blocked": 3}
    progress = world.progress(path, "acme")
    assert "may or may not have arrived" in progress.problem
    assert "was sent the message and did not respond" in progress.problem
    assert "sealpipe batch remind vendors acme" in progress.remedy
    mailbox.answers.breaks.clear()
    assert {result.exit_code for result in run_for_a_day(world, path)} == {18}
    assert recipients(mailbox) == ALL, "taken, and its answer was lost"
    (outcome,) = world.act(path, "remind", "acme")
    assert (outcome.problem, world.states(path)["acme"]) == ("", "waiting")
    assert recipients(mailbox) == sorted([*ALL, ALL[0]])


# -- a key with too few scopes --------------------------------------------------------------------


def give_scopes(world: BatchWorld, *missing: str) -> str:
    """Take a key without these scopes: those of a key never change. Returns the old key."""
    return world.rotate(scopes=[scope for scope in SCOPES if scope not in missing])


@pytest.mark.parametrize(
    ("file", "missing"),
    [(FILE, "requests:write"), (FILE, "requests:read"), (SHARES, "shares:write")],
    ids=["create a request", "list requests", "create a share"],
)
def test_a_key_that_may_not_create_is_told_and_a_new_one_goes_on(
    world: BatchWorld, file: str, missing: str
) -> None:
    path = world.write(file, ROWS)
    give_scopes(world, missing)
    result = world.run(path)
    assert f"create an API key with the scope {missing}" in told(result).remedy
    assert result.counts == {"failed": 3}
    old = world.rotate()
    assert world.run(path, previous=old).exit_code == 0
    assert len(world.loft.messages) == 3


def test_a_key_that_may_not_read_keeps_what_was_submitted_for_a_new_one(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    old = give_scopes(world, "requests:read")
    world.wait(HOUR)
    result = world.run(path, previous=old)
    assert "create an API key with the scope requests:read" in told(result).remedy
    assert (set(result.counts), world.loft.puts) == ({"failed"}, [])
    newest = world.rotate()
    world.wait(HOUR)
    assert world.run(path, previous=newest).exit_code == 0
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}
    assert (world.loft.puts, len(world.all_requests())) == (["vendors/acme"], 3)


def test_a_key_that_may_not_expire_has_stored_the_submission(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    old = give_scopes(world, "requests:write")
    world.wait(HOUR)
    result = world.run(path, previous=old)
    told(result)
    progress = world.progress(path, "acme")
    assert (world.states(path), progress.exit_code) == ({"acme": "failed"}, 4)
    assert "create an API key with the scope requests:write" in progress.remedy
    assert world.loft.values["vendors/acme"]["password"] == "s3cret"
    newest = world.rotate()
    world.wait(HOUR)
    assert world.run(path, previous=newest).exit_code == 0
    assert (world.states(path), world.loft.puts) == ({"acme": "done"}, ["vendors/acme"])
    assert world.active_requests() == []


# -- a key that was rotated -----------------------------------------------------------------------


def test_a_message_on_its_way_under_the_old_key_is_not_repeated(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.loft.down["bolt.example"] = LOST
    world.run(path)
    world.loft.down.clear()
    old = world.rotate()
    for _ in range(3):
        world.wait(HOUR)
        world.run(path, previous=old)
    assert world.states(path) == {"acme": "waiting", "bolt": "blocked", "core": "waiting"}
    assert [len(world.messages(row["to"])) for row in ROWS] == [1, 1, 1]


def test_a_delete_on_its_way_under_the_old_key_is_not_repeated(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    deletes: list[str] = []

    def lose(operation: Operation[Any]) -> Response | None:
        if operation.method != "DELETE":
            return None
        deletes.append(operation.path)
        return Response(500, {}, b"{}")

    world.before = lose  # type: ignore[method-assign]
    world.act(path, "cancel", "acme")
    old = world.rotate()
    world.wait(HOUR / 2)
    world.run(path, previous=old)
    assert (len(deletes), world.states(path)) == (1, {"acme": "failed"})
    del world.before
    world.wait(HOUR)
    world.run(path, previous=old)
    assert (world.states(path), world.active_requests()) == ({"acme": "cancelled"}, [])


def test_what_a_refused_share_has_stored_is_stored_anew_with_the_next_values(
    world: BatchWorld,
) -> None:
    file = SHARES.replace("send", 'also-to = ["nest:{name}?mode=replace#password=Password"]\nsend')
    path = world.write(file.replace("seeds:{name}", "gen:password"), ROWS[:1])
    world.before = lambda _: Response(
        403, {}, b'{"success": false, "message": "full", "error_code": 61}'
    )  # type: ignore[method-assign]
    world.run(path)
    first = dict(world.loft.values)
    del world.before
    world.run(path)
    assert world.states(path) == {"acme": "done"}
    assert world.loft.puts == ["acme", "acme"]
    assert world.loft.values != first
