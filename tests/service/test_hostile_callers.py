"""Callers of the control API that mean harm, and another program at its port."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.fault_parser import FaultPlanError
from sealpipe_rehearsal.running_service import RunningService
from support.faults import says
from support.faulty import Fault, Faulty
from support.terminal import Terminal, bare

__all__ = ["bare"]

ESCAPES = "\x1b]0;title\x07\u202e"


def test_the_clock_stops_at_the_last_valid_time(service: RunningService) -> None:
    far = {"advance_seconds": 1e9}
    answers = [
        control_client.send_request(service.origin, "POST", "/rehearsal/clock", far)
        for _ in range(230)
    ]
    assert {status for status, _ in answers} == {200, 400}
    assert answers[-1] == (400, {"message": "the clock cannot be later than 9000"})
    assert control_client.send_request(service.origin, "GET", "/rehearsal")[0] == 200
    assert service.create_key()


ROWS = {
    "half a character in members": {"fault": "members", "change": {"a": "\ud800"}},
    "half a character in data": {"fault": "error", "status": 400, "code": 1, "data": {"\udfff": 1}},
    "half a character in a route": {"fault": "reset", "when": "GET /shares/\ud800"},
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_plan_with_a_lone_surrogate_can_be_listed(
    service: RunningService, row: dict[str, object]
) -> None:
    control_client.set_faults(service.origin, [row])
    (told,) = control_client.list_faults(service.origin)
    assert told["fault"] == row["fault"]
    assert control_client.send_request(service.origin, "GET", "/rehearsal/log")[0] == 200


@pytest.mark.parametrize("value", [date(2026, 11, 21), float("inf")])
def test_a_fault_that_json_cannot_tell_is_refused_and_the_plan_stays(
    service: RunningService, value: object
) -> None:
    service.set_faults({"fault": "pass"})
    with pytest.raises(FaultPlanError, match="JSON cannot represent"):
        service.set_faults({"fault": "members", "change": {"a": value}})
    assert [each["fault"] for each in control_client.list_faults(service.origin)] == ["pass"]


STRANGERS: dict[str, Fault] = {
    "in a status line": lambda exchange: exchange.send(f"{ESCAPES}\r\n\r\n".encode()),
    "in a message": says(
        400, '{"message": "\\u001b]0;title\\u0007\\u202e"}', {"Content-Type": "application/json"}
    ),
}


@pytest.fixture
def stranger() -> Iterator[Faulty]:
    with Faulty(("127.0.0.1", 1)) as server:
        yield server


@pytest.mark.parametrize("fault", STRANGERS.values(), ids=STRANGERS)
def test_whatever_answers_at_the_port_says_nothing_to_the_terminal(
    fault: Fault, stranger: Faulty, bare: Terminal
) -> None:
    stranger.plan(
        says(200, '{"service": "sealpipe rehearsal"}', {"Content-Type": "application/json"}),
        then=fault,
    )
    port = stranger.base_url.rpartition(":")[2].partition("/")[0]
    done = bare.sealpipe("rehearsal", "key", "create", "--port", port)
    assert (done.code, done.out) == (2, "")
    assert "title" in done.err
    assert not [sign for sign in done.err if not sign.isprintable() and sign != "\n"]
