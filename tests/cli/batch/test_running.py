"""Plans and runs: what is approved, named or due; threads; a service that refuses; a key that was
rotated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.batch.pigeons import DOWN, LOST
from cli.batch.request_batch import FILE, MANY, NOTIFY, ROWS
from cli.batch.share_batch import FILE as SHARES
from cli.batch.world import DAY, UNREACHABLE, BatchWorld, fail_with, set_account
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.batch.engine.plan import dump_plan, read_plan
from sealpipe.errors import PolicyError, StateError, UsageError
from sealpipe.registry.stores import PolicyHook


def test_a_plan_tells_each_row_and_sends_nothing(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    assert world.actions(path) == dict.fromkeys(("acme", "bolt", "core"), "create")
    assert (world.all_requests(), world.store.list_batches()) == ([], [])
    world.run(path)
    assert set(world.actions(path).values()) == {"wait"}
    world.wait(4 * DAY)
    assert set(world.actions(path).values()) == {"remind"}
    world.wait(30 * DAY)
    assert set(world.actions(path).values()) == {"collect"}
    world.run(path)
    assert set(world.actions(path).values()) == {"done"}


def test_a_run_does_just_what_was_approved(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:2])
    plan_file = world.folder / "plan.json"
    plan_file.write_bytes(dump_plan(world.plan(path)))
    approved = read_plan(plan_file)
    assert approved == world.plan(path)
    world.write(FILE, ROWS)
    world.run(path, approved=approved)
    assert world.states(path) == {"acme": "waiting", "bolt": "waiting", "core": "new"}
    assert len(world.all_requests()) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda world: world.write(FILE, [{**ROWS[0], "to": "mallory.example"}, *ROWS[1:]]),
            "its content has changed",
        ),
        (lambda world: world.write(FILE, ROWS[1:]), "not there any more"),
        (
            lambda world: world.write(FILE.replace("nest:vendors", "nest:mallory")),
            "settings have changed",
        ),
        (lambda world: world.run(world.folder / "batch.toml"), "it would be: wait"),
    ],
    ids=["another recipient", "no row", "another target", "run meanwhile"],
)
def test_a_plan_that_no_longer_holds_is_refused_and_nothing_is_done(
    world: BatchWorld, change: Any, why: str
) -> None:
    path = world.write(FILE, ROWS)
    approved = world.plan(path)
    change(world)
    before = len(world.all_requests())
    with pytest.raises(StateError, match=why):
        world.run(path, approved=approved)
    assert len(world.all_requests()) == before


def test_only_the_named_rows_are_run(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path, only=["bolt"])
    assert world.states(path) == {"acme": "new", "bolt": "waiting", "core": "new"}
    with pytest.raises(UsageError, match="has no row 'bolz'") as refused:
        world.run(path, only=["bolz"])
    assert "bolt" in refused.value.remedy
    with pytest.raises(UsageError, match="has no row 'bolz'"):
        world.run(path, only=["bolz"], approved=world.plan(path))
    world.run(path, only=["acme"], approved=world.plan(path))
    assert world.states(path) == {"acme": "waiting", "bolt": "waiting", "core": "new"}


def refuse_to_create(world: BatchWorld, path: Path) -> None:
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    world.run(path)
    del world.before


def refuse_the_message(world: BatchWorld, path: Path) -> None:
    world.loft.down["*"] = DOWN
    world.run(path)
    world.loft.down.clear()


def refuse_the_reminder(world: BatchWorld, path: Path) -> None:
    world.run(path)
    world.wait(4 * DAY)
    refuse_the_message(world, path)


def refuse_the_values(world: BatchWorld, path: Path) -> None:
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.wait(DAY)
    refuse_the_message(world, path)


@pytest.mark.parametrize(
    ("fail", "action", "after"),
    [
        (refuse_to_create, "create", "waiting"),
        (refuse_the_message, "create", "waiting"),
        (refuse_the_reminder, "remind", "waiting"),
        (refuse_the_values, "wait", "done"),
    ],
)
@pytest.mark.parametrize("way", ["all", "only", "approved"])
def test_a_run_repeats_at_once_what_failed(
    world: BatchWorld, fail: Callable[[BatchWorld, Path], None], action: str, after: str, way: str
) -> None:
    """Nobody has to wait for the time of the next try, which is for workers."""
    path = world.write(FILE, ROWS[:1])
    fail(world, path)
    assert (world.states(path), world.actions(path)) == ({"acme": "failed"}, {"acme": action})
    ways = {"only": {"only": ["acme"]}, "approved": {"approved": world.plan(path)}}
    world.run(path, **ways.get(way, {}))
    is_left = way == "approved" and action == "wait"  # a look is no action that is approved
    assert world.states(path) == {"acme": "failed" if is_left else after}


def test_a_row_is_named_in_either_form_of_its_letters(world: BatchWorld) -> None:
    """Some keyboards and file systems write an accent as a sign of its own."""
    path = world.write(
        FILE.replace("vendors/{name}", "vendors/{to}"),
        [{"name": "ren\u00e9e", "system": "CRM", "to": "a.example"}],
    )
    world.run(path, only=["rene\u0301e"])
    assert world.states(path) == {"ren\u00e9e": "waiting"}


def test_threads_share_the_rows(world: BatchWorld) -> None:
    path = world.write(FILE, MANY)
    result = world.run(path, threads=4)
    assert (result.counts, result.exit_code) == ({"waiting": 20}, 0)
    assert (len(world.all_requests()), len(world.loft.messages)) == (20, 20)
    assert len({message.short_code for _, message in world.loft.messages}) == 20


def test_a_batch_of_another_kind_keeps_its_name(world: BatchWorld) -> None:
    world.run(world.write(FILE, ROWS))
    with pytest.raises(UsageError, match="another kind: its rows are requests"):
        world.run(world.write(SHARES.replace('"keys"', '"vendors"'), ROWS))


def test_two_files_of_one_name_leave_each_others_rows_alone(world: BatchWorld) -> None:
    """The second one's rows are added; those of the first are gone from the file, and stay as they
    are.
    """
    world.run(world.write(FILE, ROWS))
    path = world.write(FILE, MANY[:2], name="other.toml")
    world.run(path)
    assert [row.is_gone for row in world.plan(path).rows] == [False] * 2 + [True] * 3
    assert len(world.active_requests()) == 5


# -- a service that refuses -----------------------------------------------------------------------


def lose_creates(operation: Operation[Any], response: Response) -> Response | Failure:
    """The service creates it, and its response is lost."""
    return Failure(sent=True, detail="connection reset") if operation.method == "POST" else response


def test_a_plan_that_loses_api_access_for_a_day_costs_few_calls(world: BatchWorld) -> None:
    path = world.write(FILE, MANY)
    world.run(path)
    set_account(world.service, plan="none")
    world.wait(DAY)
    result = world.run(path)
    assert (result.exit_code, type(result.stopped).__name__) == (18, "AuthenticationError")
    assert result.calls <= 3
    assert result.counts["waiting"] >= 18
    set_account(world.service, plan="business")
    world.wait(DAY)
    assert (world.run(path).exit_code, world.states(path)["v00"]) == (0, "waiting")


def test_an_outage_leaves_most_rows_for_later(world: BatchWorld) -> None:
    path = world.write(FILE, MANY)
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    result = world.run(path)
    assert (result.exit_code, type(result.stopped).__name__) == (18, "ConnectError")
    assert result.counts == {"failed": 3, "new": 17}
    del world.before
    world.wait(3600)
    assert world.run(path).counts == {"waiting": 20}


def test_a_success_begins_the_count_of_failures_anew(world: BatchWorld) -> None:
    path = world.write(FILE, MANY)
    sent: list[bytes] = []

    def answer_the_third_only(operation: Operation[Any]) -> Failure | None:
        if operation.method != "POST":
            return None
        body = bytes(operation.body or b"")
        sent.extend([body] if body not in sent else [])  # each is sent several times
        return None if sent.index(body) == 2 else UNREACHABLE

    world.before = answer_the_third_only  # type: ignore[method-assign]
    assert world.run(path).counts == {"failed": 2 + 3, "waiting": 1, "new": 14}


def test_a_key_that_may_not_create_still_collects(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("core.example"))
    world.write(FILE, [*ROWS, *MANY[:5]])
    refused = Response(403, {}, b'{"success": false, "message": "scope", "error_code": 78}')
    world.before = fail_with(refused, "POST")  # type: ignore[method-assign]
    world.wait(DAY)
    result = world.run(path)
    assert world.states(path)["core"] == "done"
    assert result.counts["new"] == 2
    assert type(result.stopped).__name__ == "MissingScopeError"
    assert "create an API key with the scope requests:write" in world.progress(path, "v00").remedy


def test_a_lost_response_makes_no_second_request(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.after = lose_creates  # type: ignore[method-assign]
    assert world.run(path).exit_code == 18
    del world.after
    world.wait(3600)
    assert world.run(path).exit_code == 0
    assert len(world.all_requests()) == 1
    assert world.states(path) == {"acme": "waiting"}


def test_a_create_of_yesterday_is_found_by_its_key_and_never_sent_again(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.after = lose_creates  # type: ignore[method-assign]
    world.run(path)
    del world.after
    world.wait(2 * DAY)
    world.run(path)
    assert (len(world.all_requests()), world.states(path)) == (1, {"acme": "waiting"})
    assert len(world.messages("acme.example")) == 1
    assert ("POST", "/requests") not in world.network.log


def test_a_share_of_yesterday_is_never_sent_again(world: BatchWorld) -> None:
    path = world.write(SHARES, ROWS[:1])
    world.after = lose_creates  # type: ignore[method-assign]
    world.run(path)
    del world.after
    world.wait(2 * DAY)
    world.run(path)
    assert (len(world.all_shares()), world.states(path)) == (1, {"acme": "blocked"})
    assert "batch reissue keys acme" in world.progress(path, "acme").remedy
    world.act(path, "reissue", "acme")
    assert (len(world.all_shares()), world.states(path)) == (2, {"acme": "done"})


# -- a key that was rotated -----------------------------------------------------------------------


def test_a_rotated_key_takes_over_and_opens_what_was_sealed_to_the_old_one(
    world: BatchWorld,
) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    old = world.rotate()
    world.store.close()
    world.store = world.open_store()
    with pytest.raises(StateError):
        world.run(path)
    world.store.close()

    world.store = world.open_store(previous=old)
    world.wait(DAY)
    world.run(path, previous=old)
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}
    assert world.loft.values["vendors/acme"]["password"] == "s3cret"

    world.store.close()
    world.store = world.open_store()
    world.submit(world.code_of("bolt.example"))
    world.wait(DAY)
    assert world.run(path).exit_code == 0, "the old key is not needed any more"
    assert world.states(path)["bolt"] == "done"
    assert len(world.all_requests()) == 3


@pytest.mark.parametrize("look", ["list", "status", "plan"])
def test_whatever_takes_over_keeps_what_opens_submissions(world: BatchWorld, look: str) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.rotate()
    looks = {
        "list": world.store.list_batches,
        "status": lambda: world.engine(path),
        "plan": lambda: world.plan(path),
    }
    looks[look]()
    world.store.close()
    world.store = world.open_store()
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 0, world.progress(path, "acme").problem
    assert world.states(path)["acme"] == "done"
    assert world.loft.values["vendors/acme"]["password"] == "s3cret"


def test_a_key_that_is_rotated_twice_still_opens_the_first_links(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    for _ in range(2):
        world.rotate()
        world.store.list_batches()
    world.store.close()
    world.store = world.open_store()
    world.submit(world.code_of("acme.example"))
    world.wait(DAY)
    assert world.run(path).exit_code == 0, world.progress(path, "acme").problem
    assert world.states(path) == {"acme": "done"}


@pytest.mark.parametrize(
    ("file", "state"), [(FILE, "blocked"), (SHARES, "blocked")], ids=["request", "share"]
)
def test_what_was_on_its_way_under_the_old_key_is_never_resent(
    world: BatchWorld, file: str, state: str
) -> None:
    path = world.write(file, ROWS[:1])
    world.after = lose_creates  # type: ignore[method-assign]
    world.run(path)
    del world.after
    old = world.rotate()
    world.wait(3600)
    world.run(path, previous=old)
    assert world.states(path) == {"acme": state}
    assert "POST" not in {method for method, _ in world.network.log}


# -- the team, and policies -----------------------------------------------------------------------


def test_the_team_hears_what_changed_in_numbers(world: BatchWorld) -> None:
    path = world.write(FILE + NOTIFY, ROWS)
    assert world.run(path).warnings == ()
    (news,) = world.messages("team")
    text = news.text.reveal()
    assert (news.what, news.subject) == ("batch", "Batch vendors")
    assert "vendors: 3 waiting" in text
    assert "3 rows delivered" in text
    world.run(path)
    assert len(world.messages("team")) == 1, "nothing has changed"
    for row in ROWS:
        for word in (row["name"], row["to"], world.code_of(row["to"])):
            assert word not in text


def test_the_team_hears_names_where_the_file_says_so_and_of_the_end(world: BatchWorld) -> None:
    path = world.write(FILE + NOTIFY + "rows = true\n", ROWS[:1])
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.wait(DAY)
    world.run(path)
    news = world.messages("team")[-1]
    assert "collected: acme" in news.text.reveal()
    assert "Every row has ended." in news.text.reveal()
    assert news.subject == "Batch vendors, every row has ended"


def test_news_that_cannot_be_sent_are_a_warning_and_come_with_the_next(world: BatchWorld) -> None:
    path = world.write(FILE + NOTIFY, ROWS)
    world.loft.down["team"] = DOWN
    result = world.run(path)
    assert result.exit_code == 0
    assert (
        "were not sent to pigeon:team, and come with the next: the loft is closed"
        in result.warnings[0]
    )
    world.loft.down.clear()
    assert world.run(path).warnings == ()
    assert "3 rows delivered" in world.messages("team")[0].text.reveal()


def test_news_that_may_be_lost_are_not_repeated_and_the_next_say_so(world: BatchWorld) -> None:
    path = world.write(FILE + NOTIFY, ROWS)
    world.loft.down["team"] = LOST
    assert "may not have reached pigeon:team: a hawk was seen" in world.run(path).warnings[0]
    world.loft.down.clear()
    assert (world.run(path).warnings, len(world.messages("team"))) == ((), 1)
    world.act(path, "cancel", "acme")
    world.run(path)
    text = world.messages("team")[-1].text.reveal()
    assert "The message before this one may not have arrived." in text
    assert "delivered" not in text
    assert "1 row cancelled" in text, "also what somebody did by hand"


def test_a_policy_that_allows_no_batch_stops_it_before_anything(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.hooks = (PolicyHook("policy", {"actions": ["share", "request", "collect", "expire"]}),)
    with pytest.raises(PolicyError, match="batch"):
        world.run(path)
    assert (world.all_requests(), world.store.list_batches()) == ([], [])
    world.hooks = (PolicyHook("policy", {"actions": ["batch", "request"]}),)
    assert world.run(path).counts == {"waiting": 3}
