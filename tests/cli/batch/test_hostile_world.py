"""Batches where others do their worst: other commands on the same request, a service that tells
absurd things.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.batch.request_batch import FILE, NOTIFY, ROWS
from cli.batch.rounds import make_worker
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND
from cli.batch.world import BASE_URL, DAY, BatchWorld
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.api.requests import Submission
from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.rate import MAX_LIMIT
from sealpipe.batch.engine.actions import act
from sealpipe.batch.engine.sync import digest
from sealpipe.batch.file.reading import read_definition
from sealpipe.batch.file.render import render_row
from sealpipe.batch.report.figures import make_report
from sealpipe.batch.report.files import format_moment, to_members
from sealpipe.batch.report.page import make_page
from sealpipe.batch.report.status import read_facts
from sealpipe.batch.steps.row_outbox import RowOutbox, make_ledger_opener
from sealpipe.batch.steps.states import HOUR, Progress
from sealpipe.errors import PolicyError
from sealpipe.registry.stores import PolicyHook
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger

# -- other commands on the same request -----------------------------------------------------------


def open_file(world: BatchWorld, code: str) -> Ledger:
    """Open the ledger that `sealpipe requests expire` uses."""
    assert world.store.ledger_folder is not None
    ledger = open_ledger(world.store.ledger_folder, BASE_URL, code)
    assert ledger is not None
    return ledger


@pytest.fixture
def begun(world: BatchWorld) -> Path:
    """A request that is out, and a machine on which other commands have ledgers."""
    world.store.ledger_folder = world.folder / "state" / "requests"
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    return path


def list_deletes(world: BatchWorld) -> list[str]:
    return [path for method, path in world.network.log if method == "DELETE"]


def test_a_delete_of_another_command_is_not_sent_again(world: BatchWorld, begun: Path) -> None:
    ledger = open_file(world, world.code_of("acme.example"))
    ledger.note_delete(PendingDelete(datetime.now(UTC), world.clock.now()))
    ledger.close()
    (outcome,) = world.act(begun, "cancel", "acme")
    assert "sends no second DELETE" in outcome.remedy
    assert list_deletes(world) == []
    assert len(world.active_requests()) == 1
    world.wait(2 * 3600)
    world.run(begun)
    assert (world.states(begun), len(list_deletes(world))) == ({"acme": "cancelled"}, 1)


def test_another_command_knows_of_the_delete_of_a_batch(world: BatchWorld, begun: Path) -> None:
    world.before = lose_deletes  # type: ignore[method-assign]
    world.act(begun, "cancel", "acme")
    ledger = open_file(world, world.code_of("acme.example"))
    assert ledger.pending is not None
    ledger.close()
    del world.before
    world.wait(2 * 3600)
    world.run(begun)
    ledger = open_file(world, world.code_of("acme.example"))
    assert (ledger.pending, ledger.is_expired) == (None, True)
    ledger.close()


def lose_deletes(operation: Operation[Any]) -> Response | Failure | None:
    return Failure(sent=True, detail="connection reset") if operation.method == "DELETE" else None


def test_one_command_at_a_time_ends_a_request(world: BatchWorld, begun: Path) -> None:
    code, row = world.code_of("acme.example"), world.rows(begun)["acme"]
    opener = make_ledger_opener(world.store, row)
    ledger = open_file(world, code)
    assert opener(BASE_URL, code) is None
    ledger.close()
    ours = opener(BASE_URL, code)
    assert ours is not None
    ours.keep([Submission("a", "data a")])
    assert open_ledger(world.store.ledger_folder, BASE_URL, code) is None
    ours.close()
    ledger = open_file(world, code)
    ledger.close()
    assert list(world.folder.glob("state/requests/*")) == [], "what is kept is in the database only"


def test_a_row_that_another_worker_took_is_told(world: BatchWorld, begun: Path) -> None:
    engine = world.engine(begun)
    store, row = world.open_store(), world.rows(begun)["acme"]
    world.loft.after = lambda _: store.save(
        row, state=row.state, due_at=row.due_at, content=row.content or {}
    )
    (outcome,) = act(engine, "remind", ["acme"])
    store.close()
    assert "another worker took this row" in outcome.problem


# -- a service that tells absurd things -----------------------------------------------------------


def test_an_absurd_retry_after_postpones_a_row_by_an_hour_at_most(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.before = refuse_for_ever  # type: ignore[method-assign]
    world.run(path)
    assert world.states(path) == {"acme": "failed"}
    due_at = world.rows(path)["acme"].due_at
    assert due_at is not None
    assert due_at <= world.store.now() + HOUR
    assert format_moment(due_at)


def refuse_for_ever(operation: Operation[Any]) -> Response | Failure | None:
    return Response(429, {"retry-after": "9" * 12}, b"") if operation.method == "POST" else None


def test_a_run_waits_where_the_rate_limit_says_so(world: BatchWorld) -> None:
    """Two creates are refused once, before it reaches the service: each row is waited for, none is
    lost.
    """
    path = world.write(FILE, ROWS)
    refused: set[str] = set()

    def refuse_once(operation: Operation[Any]) -> Response | Failure | None:
        key = operation.headers.get("idempotency-key", "")
        if operation.method != "POST" or len(refused) > 1 or key in refused:
            return None
        refused.add(key)
        return Response(429, {"retry-after": "1"}, b"")

    world.before = refuse_once  # type: ignore[method-assign]
    began = time.monotonic()
    assert world.run(path).counts == {"waiting": 3}
    assert len(refused) == 2
    assert time.monotonic() - began >= 2, "two refusals of one second each"
    assert len(world.active_requests()) == 3


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_a_submission_of_any_year_can_be_reported(world: BatchWorld, year: str) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.after = partial(tell_year, year=year)  # type: ignore[method-assign]
    world.wait(DAY)
    world.run(path)
    engine = world.engine(path)
    report = make_report(
        "vendors", "request", BASE_URL, read_facts(engine), engine.schedule, world.store.now()
    )
    assert report.used == 1
    assert report.timeline is not None
    assert len(report.timeline.used) < 2000
    assert len(make_page(report)) < 200_000
    assert to_members(report)["timeline"]


def tell_year(operation: Operation[Any], response: Response, year: str) -> Response:
    if not operation.path.endswith("/submissions"):
        return response
    members = json.loads(response.body)
    for each in members["submissions"]:
        each["created_at"] = f"{year}-01-02T00:00:00Z"
    return Response(response.status, response.headers, json.dumps(members).encode())


@pytest.mark.parametrize("told", [10**30, -1], ids=["absurd", "none"])
def test_an_absurd_limit_stops_no_run(extended_world: BatchWorld, told: int) -> None:
    world = extended_world
    path = world.write(FILE, ROWS)
    world.after = partial(tell_limit, told)  # type: ignore[method-assign]
    assert world.run(path).counts == {"waiting": 3}
    assert world.store.rate.read().per_minute == MAX_LIMIT


def tell_limit(told: int, operation: Operation[Any], response: Response) -> Response:
    if not operation.path.endswith("/capabilities"):
        return response
    members = json.loads(response.body)
    members["key"]["rate_limit_rpm"] = told
    return Response(response.status, response.headers, json.dumps(members).encode())


# -- what others can read, and policies -----------------------------------------------------------


def test_a_plan_confirms_no_guess_of_a_cell(world: BatchWorld) -> None:
    path = world.write(SHARES.replace("seeds:{name}", "text:{name}"), ROWS[:1])
    plan, definition = world.plan(path), read_definition(path)
    guess = render_row(definition, definition.rows[0]).digest
    assert world.plan(path) == plan
    assert plan.rows[0].digest != guess
    assert plan.settings != digest(definition.dump())
    world.run(path, approved=plan)
    assert world.progress(path, "acme").digest == guess, "sealed in the database"


def test_the_seed_of_a_request_is_not_shown() -> None:
    assert "canary" not in repr(Progress(seed="canary"))


def test_a_policy_that_allows_no_batch_holds_for_workers_and_by_hand(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.wait(DAY)
    world.hooks = (PolicyHook("policy", {"actions": ["share", "request", "collect", "expire"]}),)
    with pytest.raises(PolicyError, match="batch"):
        make_worker(world).run(0.5)
    for verb in ("remind", "reissue"):
        with pytest.raises(PolicyError, match="batch"):
            world.act(path, verb, "acme")  # type: ignore[arg-type]
    assert len(world.messages("acme.example")) == 1
    world.act(path, "cancel", "acme")
    assert world.states(path)["acme"] == "cancelled"


ALLOWED: dict[str, Any] = {
    "sources": ["seeds", "text"],
    "sinks": ["*"],
    "recipients": ["pigeon:*.example"],
}


def test_a_policy_that_allows_a_link_allows_its_reminders(world: BatchWorld) -> None:
    world.hooks = (
        PolicyHook("policy", {**ALLOWED, "most_submissions": 1, "types": ["password", "text"]}),
    )
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.wait(3.5 * DAY)
    assert world.run(path).counts == {"waiting": 1}
    assert len(world.messages("acme.example")) == 2


def test_what_a_policy_refuses_today_does_not_leave_by_a_reminder(world: BatchWorld) -> None:
    world.hooks = (PolicyHook("policy", {**ALLOWED, "most_views": 1}),)
    path = world.write(SHARES.replace("send", "views = 1\nsend") + REMIND, ROWS[:1])
    world.run(path)
    world.hooks = (PolicyHook("policy", {**ALLOWED, "sources": ["text"]}),)
    world.wait(2.5 * DAY)
    world.run(path)
    assert "the source" in world.progress(path, "acme").problem
    assert len(world.messages("acme.example")) == 1
    world.hooks = (PolicyHook("policy", {**ALLOWED, "most_views": 1}),)
    world.wait(DAY)
    world.run(path)
    assert len(world.messages("acme.example")) == 2


def test_the_audit_log_has_the_news_of_a_batch(world: BatchWorld) -> None:
    log = world.folder / "audit.jsonl"
    world.hooks = (PolicyHook("audit", {"file": str(log)}),)
    assert world.run(world.write(FILE + NOTIFY, ROWS[:1])).warnings == ()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    outcomes = [each.get("outcome") for each in events if each.get("event") == "batch"]
    assert outcomes == ["begun", "sent"]


def test_an_outage_of_the_database_ends_no_share_by_halves(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.write(SHARES, ROWS[:1])
    world.after = lose_answers  # type: ignore[method-assign]
    world.run(path)
    del world.after

    def open_nothing(_: RowOutbox) -> None:
        raise DatabaseUnavailableError("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(RowOutbox, "open", open_nothing)
        (outcome,) = world.act(path, "cancel", "acme")
    assert outcome.problem == "the database does not answer"
    assert world.states(path) == {"acme": "ending"}
    world.run(path)
    assert world.states(path) == {"acme": "cancelled"}


def lose_answers(operation: Operation[Any], response: Response) -> Response | Failure:
    return Failure(sent=True, detail="connection reset") if operation.method == "POST" else response
