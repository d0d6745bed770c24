"""Cancel, reissue, remind and link by hand, for rows that the file no longer has, and when
something is in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.batch.pigeons import DOWN, LOST
from cli.batch.request_batch import FILE as REQUESTS
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND, opened
from cli.batch.vendors import ROWS as VENDOR_ROWS
from cli.batch.vendors import VENDORS
from cli.batch.world import DAY, UNREACHABLE, BatchWorld, fail_with
from sealpipe.api import requests, shares
from sealpipe.api.operation import Failure, Response
from sealpipe.batch.engine import actions
from sealpipe.batch.engine.actions import Outcome, Verb, act, show_link
from sealpipe.errors import UsageError
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal

FILES: Mapping[str, str] = {"request": REQUESTS, "share": SHARES + REMIND}
ROWS = [{"name": name, "system": "CRM", "to": f"{name}.example"} for name in ("acme", "bolt")]


class Trouble(NamedTuple):
    """What happens to a row before it leaves the file, and its state then.

    `is_out`: its link is.
    """

    state: str
    is_out: bool
    begin: Callable[[BatchWorld], object] = lambda _: None


def lose_message(world: BatchWorld) -> None:
    world.loft.down["acme.example"] = LOST


def refuse_message(world: BatchWorld) -> None:
    world.loft.down["acme.example"] = DOWN


def refuse_connection(world: BatchWorld) -> None:
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]


TROUBLES = {
    "waiting": Trouble("waiting", is_out=True),
    "not created": Trouble("failed", is_out=False, begin=refuse_connection),
    "not delivered": Trouble("failed", is_out=False, begin=refuse_message),
    "message unclear": Trouble("blocked", is_out=True, begin=lose_message),
}


def leave(world: BatchWorld, kind: str, trouble: Trouble = TROUBLES["waiting"]) -> Path:
    """Run a batch, and once more when the row acme has left its file."""
    path = world.write(FILES[kind], ROWS)
    trouble.begin(world)
    world.run(path)
    vars(world).pop("before", None)
    world.loft.down.clear()
    assert world.states(path)["acme"] == trouble.state
    world.write(FILES[kind], ROWS[1:])
    world.wait(600)
    warnings = world.run(path).warnings
    assert any("row acme is not in the file any more" in each for each in warnings)
    assert world.states(path)["acme"] == trouble.state
    return path


def ask(world: BatchWorld, path: Path, verb: Verb) -> Outcome:
    (outcome,) = world.act(path, verb, "acme")
    return outcome


def works(world: BatchWorld, kind: str, number: int = -1) -> bool:
    """Whether the link of a message to acme still works. Opening a share uses it up."""
    if kind == "share":
        return opened(world, "acme.example") == 200
    return world.messages("acme.example")[number].short_code in world.active_requests()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_row_that_is_gone_is_cancelled(world: BatchWorld, kind: str, trouble: str) -> None:
    path = leave(world, kind, TROUBLES[trouble])
    outcome = ask(world, path, "cancel")
    assert ([change.what for change in outcome.changes], outcome.problem) == (["cancelled"], "")
    assert world.states(path)["acme"] == "cancelled"
    if TROUBLES[trouble].is_out:
        assert not works(world, kind)
    if kind == "request":
        assert len(world.active_requests()) == 1
    result = world.run(path)
    assert (result.changes, result.warnings, result.exit_code) == ([], (), 0)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_row_that_is_gone_is_reissued_and_then_left_alone(
    world: BatchWorld, kind: str, trouble: str
) -> None:
    path = leave(world, kind, TROUBLES[trouble])
    outcome = ask(world, path, "reissue")
    whats = [change.what for change in outcome.changes]
    assert (whats, outcome.problem) == (["reissued", "created", "delivered"], "")
    assert (world.states(path)["acme"], world.rows(path)["acme"].generation) == ("waiting", 2)
    if kind == "request":
        assert len(world.active_requests()) == 2
    number = len(world.messages("acme.example"))
    world.wait(4 * DAY)
    world.run(path)
    assert len(world.messages("acme.example")) == number, "nobody is reminded of a row that is gone"
    assert works(world, kind)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("trouble", ["waiting", "message unclear"])
def test_a_row_that_is_gone_is_reminded(world: BatchWorld, kind: str, trouble: str) -> None:
    path = leave(world, kind, TROUBLES[trouble])
    outcome = ask(world, path, "remind")
    assert ([change.what for change in outcome.changes], outcome.problem) == (["reminded"], "")
    assert len(world.messages("acme.example")) == 2
    assert world.states(path)["acme"] == "waiting"
    assert world.rows(path)["acme"].due_at is None


def test_a_row_that_is_gone_has_its_link(world: BatchWorld) -> None:
    path = leave(world, "request")
    code = world.code_of("acme.example")
    assert show_link(world.engine(path), "acme").endswith(f"/{code}")


def test_the_link_of_a_row_that_is_gone_and_never_was_out_is_reissued(world: BatchWorld) -> None:
    path = leave(world, "request", TROUBLES["not created"])
    with pytest.raises(UsageError, match="has no link yet") as refused:
        show_link(world.engine(path), "acme")
    assert refused.value.remedy == "`sealpipe batch reissue vendors acme` creates it"
    ask(world, path, "reissue")
    assert show_link(world.engine(path), "acme").endswith(f"/{world.code_of('acme.example')}")


@pytest.mark.parametrize("verb", ["cancel", "reissue"])
def test_what_was_asked_for_is_done_though_the_file_loses_its_row(
    world: BatchWorld, verb: Verb
) -> None:
    """The command is killed after it has recorded what was asked for; the next run has another
    file.
    """
    path = world.write(REQUESTS, ROWS)
    world.run(path)

    def kill(_: object) -> Failure:
        raise KeyboardInterrupt

    world.before = kill  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        ask(world, path, verb)
    del world.before
    world.write(REQUESTS, ROWS[1:])
    world.wait(600)
    planned = {row.key: row for row in world.plan(path).rows}["acme"]
    assert planned.action == {"cancel": "done", "reissue": "reissue"}[verb]
    result = world.run(path)
    assert result.warnings == ()
    assert world.states(path)["acme"] == {"cancel": "cancelled", "reissue": "waiting"}[verb]
    assert len(world.active_requests()) == {"cancel": 1, "reissue": 2}[verb]


def test_a_plan_says_what_somebody_asked_for(world: BatchWorld) -> None:
    path = leave(world, "request")
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    outcome = ask(world, path, "reissue")
    assert "connection refused" in outcome.problem
    del world.before
    planned = {row.key: row for row in world.plan(path).rows}["acme"]
    assert planned.detail == "the file no longer has this row, but somebody asked to reissue it"
    world.wait(600)
    world.run(path)
    assert world.states(path)["acme"] == "waiting"
    assert len(world.active_requests()) == 2


@pytest.mark.parametrize("verb", ["cancel", "remind", "reissue"])
def test_a_file_that_is_wrong_or_missing_is_in_nobodys_way(world: BatchWorld, verb: Verb) -> None:
    path = world.write(REQUESTS, ROWS)
    world.run(path)
    engine = world.engine(path)
    path.write_text("name =")
    (world.folder / "rows.csv").unlink()
    outcomes = act(engine, verb, ["acme"])
    assert [outcome.problem for outcome in outcomes] == [""]


@pytest.mark.parametrize("verb", ["cancel", "remind", "reissue"])
@pytest.mark.parametrize("kind", FILES)
def test_new_columns_are_in_nobodys_way(world: BatchWorld, kind: str, verb: Verb) -> None:
    """The file names columns now that a row that has left it does not have: it stays as it was
    made.
    """
    path = leave(world, kind)
    text = (
        FILES[kind]
        .replace("pigeon:{to}", "pigeon:{who}")
        .replace("vendors/{name}", "vendors/{folder}")
    )
    world.write(text, [{**row, "who": row["to"], "folder": "x"} for row in ROWS[1:]])
    world.run(path)
    outcome = ask(world, path, verb)
    assert outcome.problem == ""
    assert len(world.messages("acme.example")) == (1 if verb == "cancel" else 2)


def test_a_row_that_never_was_out_needs_the_columns_of_the_file(world: BatchWorld) -> None:
    path = world.write(REQUESTS, ROWS)
    world.run(path, only=["bolt"])
    world.write(
        REQUESTS.replace("pigeon:{to}", "pigeon:{who}"),
        [{**row, "who": row["to"]} for row in ROWS[1:]],
    )
    world.run(path)
    outcome = ask(world, path, "reissue")
    assert outcome.problem.endswith("names columns now that it does not have: who")
    assert outcome.remedy == "put the row back into the file with these cells, and run it"
    assert world.states(path)["acme"] == "failed"
    assert world.messages("") == []
    world.write(REQUESTS, ROWS)
    world.wait(600)
    world.run(path)
    assert world.states(path)["acme"] == "waiting"


@pytest.mark.parametrize("verb", ["cancel", "reissue"])
def test_a_request_that_is_about_to_end_is_told(world: BatchWorld, verb: Verb) -> None:
    """No DELETE is sent so late.

    The command says that it is not over yet. Until then nobody asks for it, and the next run ends
    it.
    """
    path = leave(world, "request")
    code = world.code_of("acme.example")
    world.wait(30 * DAY - 660)
    outcome = ask(world, path, verb)
    participle = {"cancel": "cancelled", "reissue": "reissued"}[verb]
    assert outcome.problem.startswith(f"not {participle} yet: it is ending, and goes on at ")
    assert outcome.problem.endswith(" (its request ends by itself within two minutes)")
    assert outcome.remedy == "`sealpipe batch run FILE` or a worker does it then"
    assert "DELETE" not in [method for method, _ in world.network.log]
    world.wait(45)
    world.run(path)
    assert not [path for _, path in world.network.log if code in path]
    world.wait(300)
    world.run(path)
    assert world.states(path)["acme"] == {"cancel": "cancelled", "reissue": "waiting"}[verb]


def test_a_message_that_may_be_lost_is_no_success(world: BatchWorld) -> None:
    path = leave(world, "request")
    lose_message(world)
    for verb in ("remind", "reissue"):
        outcome = ask(world, path, verb)
        assert "may or may not have arrived" in outcome.problem
        assert "sealpipe batch remind vendors acme" in outcome.remedy


def end_at_service(world: BatchWorld, code: str, kind: str) -> None:
    """The owner expires it, not by the batch."""
    operation = shares.expire(code) if kind == "share" else requests.delete(code)
    assert isinstance(world.network.send(operation, 5), Response)


@pytest.mark.parametrize("kind", FILES)
def test_nobody_is_reminded_of_a_link_that_no_longer_works(world: BatchWorld, kind: str) -> None:
    path = world.write(FILES[kind], ROWS)
    world.run(path)
    end_at_service(world, world.code_of("acme.example"), kind)
    outcome = ask(world, path, "remind")
    name = world.engine(path).batch.name
    assert (outcome.problem, list(outcome.changes)) == ("its link no longer works", [])
    assert outcome.remedy == f"`sealpipe batch reissue {name} acme` creates another, and sends it"
    assert len(world.messages("acme.example")) == 1
    assert {each.key: each.problem for each in world.act(path, "remind")} == {
        "acme": "its link no longer works",
        "bolt": "",
    }
    assert ask(world, path, "reissue").problem == ""
    assert works(world, kind)


def test_no_reminder_is_due_of_a_share_that_no_longer_works(world: BatchWorld) -> None:
    path = world.write(FILES["share"], ROWS)
    world.run(path)
    end_at_service(world, world.code_of("acme.example"), "share")
    world.wait(2 * DAY + 60)
    world.run(path)
    assert world.states(path) == {"acme": "expired", "bolt": "waiting"}
    assert [len(world.messages(f"{name}.example")) for name in ("acme", "bolt")] == [1, 2]


def test_a_row_without_a_recipient_is_told_and_its_link_can_be_passed_on(world: BatchWorld) -> None:
    text = REQUESTS.replace('send = ["pigeon:{to}"]', "").partition("[remind]")
    path = world.write(text[0] + "[collect]" + text[2].partition("[collect]")[2], ROWS)
    world.run(path)
    outcome = ask(world, path, "remind")
    assert outcome.problem == "it has no recipient: it was created without send"
    assert outcome.remedy == "`sealpipe batch link vendors acme` prints its link, to pass it on"
    assert world.states(path)["acme"] == "waiting"
    assert show_link(world.engine(path), "acme")


@pytest.mark.parametrize("kind", FILES)
def test_cancel_of_a_row_that_is_done_names_what_ends_its_link(
    world: BatchWorld, kind: str
) -> None:
    path = world.write({"share": SHARES, "request": REQUESTS}[kind], ROWS)
    world.run(path)
    code = world.code_of("acme.example")
    if kind == "request":
        world.submit(code)
        world.wait(3600)
        world.run(path)
    outcome = ask(world, path, "cancel")
    name = world.engine(path).batch.name
    assert outcome.problem == "it is done already"
    assert outcome.remedy == (
        f"`sealpipe {kind}s expire {code}` ends its link; `sealpipe batch reissue {name} "
        "acme` begins it anew"
    )


def test_all_rows_that_are_not_over_are_cancelled_those_that_are_ending_too(
    world: BatchWorld,
) -> None:
    path = leave(world, "request")
    refuse_connection(world)
    world.act(path, "cancel", "acme")
    del world.before
    outcomes = world.act(path, "cancel")
    assert sorted((outcome.key, outcome.problem) for outcome in outcomes) == [
        ("acme", ""),
        ("bolt", ""),
    ]
    assert (set(world.states(path).values()), world.active_requests()) == ({"cancelled"}, [])


def test_a_row_that_a_worker_has_is_told(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "HELD_PATIENCE", 0)
    path = leave(world, "request")
    engine = world.engine(path)
    row = world.rows(path)["acme"]
    held = engine.store.take(engine.batch, row.id)
    assert held is not None
    outcome = ask(world, path, "cancel")
    assert outcome.problem == "it is waiting, and another worker has it: nothing was done"
    assert outcome.remedy == "run the command again"
    engine.store.give_back(held)
    assert ask(world, path, "cancel").problem == ""


def test_a_vendor_that_left_can_submit_nothing_after_cancel(
    user: Terminal, service: RunningService
) -> None:
    """At a service that runs, by the commands."""
    user.file("vendors.toml", VENDORS)
    user.file("vendors.csv", VENDOR_ROWS)
    user.sealpipe("batch", "run", "vendors.toml")
    user.file("vendors.csv", VENDOR_ROWS.replace("acme,acme.secret\n", ""))
    warned = user.sealpipe("batch", "run", "vendors.toml")
    assert "row acme is not in the file any more: left alone, until `batch cancel`" in warned.err
    links = {
        name: next(
            word
            for word in (user.here / f"{name}.link").read_text().split()
            if word.startswith("http")
        )
        for name in ("acme", "bolt")
    }
    vendor = service.submitter()
    forms = {name: vendor.open_form(collect_link) for name, collect_link in links.items()}
    done = user.sealpipe("batch", "cancel", "vendors", "acme")
    assert (done.code, done.out, done.err) == (0, "", "acme: cancelled\n")
    with pytest.raises(LinkRefusedError):
        vendor.fill_in(links["acme"], forms["acme"], {"Password": "too late"}, tag="svc")
    vendor.fill_in(links["bolt"], forms["bolt"], {"Password": "in time"}, tag="svc")
    states = user.sealpipe("batch", "status", "vendors", "--output", "json").json["counts"]
    assert states == {"waiting": 1, "cancelled": 1}
    again = user.sealpipe("batch", "cancel", "vendors", "acme")
    assert again.code == 18
    assert again.err.startswith("acme: it is cancelled already; ")


@pytest.mark.parametrize("kind", ["request", "share"])
def test_a_row_that_is_over_is_told_as_reissued_before_what_follows(
    world: BatchWorld, kind: str
) -> None:
    path = world.write(FILES[kind], ROWS[:1])
    world.run(path)
    ask(world, path, "cancel")
    outcome = ask(world, path, "reissue")
    assert [change.what for change in outcome.changes] == ["reissued", "created", "delivered"]
    assert world.states(path) == {"acme": "waiting"}
