"""Whoever looks at a row learns the same from its status, the batch's report, and the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli.batch.pigeons import DOWN
from cli.batch.request_batch import FILE, ROWS
from cli.batch.world import BASE_URL, BatchWorld
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.batch.report.figures import make_report
from sealpipe.batch.report.files import to_members
from sealpipe.batch.report.status import read_facts
from sealpipe.registry.stores import PolicyHook


def test_status_report_and_audit_tell_the_same_story(world: BatchWorld) -> None:
    log = world.folder / "audit.jsonl"
    world.hooks = (PolicyHook("audit", {"file": str(log)}),)
    path = world.write(FILE, ROWS[:1])
    world.loft.down["*"] = DOWN
    assert tell_story(world, path) == ("failed", ["created", "failed"])
    world.loft.down.clear()
    assert tell_story(world, path) == ("waiting", ["created", "failed", "delivered"])
    world.before = lose_looks  # type: ignore[method-assign]
    assert tell_story(world, path)[0] == "failed"
    del world.before
    world.write(FILE, [{**ROWS[0], "system": "Wiki"}])
    recovered = ["created", "failed", "delivered", "failed", "changed", "recovered"]
    assert tell_story(world, path) == ("waiting", recovered)
    world.write(FILE, ROWS[:1])
    world.submit(world.code_of("acme.example"))
    assert tell_story(world, path) == ("done", [*recovered, "changed back", "collected"])

    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {(each["batch"], each["row"]) for each in events} == {("vendors", "acme")}
    ends = [
        f"{each['event']} {each['outcome']}"
        for each in events
        if each["outcome"] not in ("sending", "begun")
    ]
    sent = ["request created", "delivery failed", "request created", "delivery sent"]
    assert ends == [*sent, "expire expired", "collect collected"]


def tell_story(world: BatchWorld, path: Path) -> tuple[str, list[str]]:
    """Run a batch a few hours later; the state of its one row in a report, and its history
    there.
    """
    world.wait(4 * 3600)
    world.run(path)
    engine = world.engine(path)
    facts = read_facts(engine, with_history=True)
    told = to_members(
        make_report("vendors", "request", BASE_URL, facts, engine.schedule, world.store.now())
    )
    assert world.states(path) == {"acme": told["rows"][0]["state"]}
    return told["rows"][0]["state"], [each["what"] for each in told["rows"][0]["history"]]


def lose_looks(operation: Operation[Any]) -> Response | Failure | None:
    return Failure(sent=True, detail="connection reset") if operation.method == "GET" else None
