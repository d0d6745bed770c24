"""Idempotency-Key (specification: POST /v1/shares, Limits): raw bytes, one API key, 24 hours, only
2xx.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from service.callers import Api, body, by_hand, refusal

CONTENT = json.dumps(body(title="first")).encode()
RESERIALISED = {
    "other key order": json.dumps(dict(reversed(list(body(title="first").items())))).encode(),
    "other white space": json.dumps(body(title="first"), separators=(",", ":")).encode(),
    "one byte more": CONTENT + b" ",
    "another escape": CONTENT.replace(b"first", b"\\u0066irst"),
    "another value": json.dumps(body(title="second")).encode(),
    "not JSON": b"{",
    "empty": b"",
}


class Gate:
    """Holds the first call that reaches a moment of the service until it is opened."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, moment: str) -> None:
        if moment == self.moment and not self.reached.is_set():
            self.reached.set()
            assert self.opened.wait(10)


@pytest.mark.spec("idempotency.104", "errors.104", "share.create.headers")
@pytest.mark.parametrize("key", [None, "", " ", "\t  "])
def test_a_missing_or_blank_header_is_104(
    service: RunningService, api: Api, key: str | None
) -> None:
    headers = {"Authorization": api.bearer} | ({} if key is None else {"Idempotency-Key": key})
    status, envelope = by_hand(service, "POST", "/v1/shares", headers)
    assert (status, envelope["error_code"]) == (400, 104)


def test_104_comes_before_validation(api: Api) -> None:
    assert refusal(api.post(b"{", key=None)) == (400, 104)


@pytest.mark.spec("idempotency.replay", "idempotency.200")
def test_a_replay_is_200_with_the_first_answers_bytes(api: Api) -> None:
    first = api.post(CONTENT, "k")
    replays = [api.post(CONTENT, "k") for _ in range(3)]
    assert first.status_code == 201
    assert {(replay.status_code, replay.content) for replay in replays} == {(200, first.content)}
    assert len(api.codes()) == 1


@pytest.mark.spec("idempotency.replay")
def test_a_replay_repeats_the_response_even_after_the_share_ends(api: Api) -> None:
    first = api.post(CONTENT, "k")
    api.http.delete(f"/shares/{first.json()['short_code']}")
    assert api.post(CONTENT, "k").content == first.content


@pytest.mark.spec("idempotency.105", "idempotency.raw-bytes", "errors.105")
@pytest.mark.parametrize("how", RESERIALISED)
def test_another_body_under_the_key_is_105_even_by_one_byte(api: Api, how: str) -> None:
    first = api.post(CONTENT, "k")
    assert refusal(api.post(RESERIALISED[how], "k")) == (409, 105)
    assert api.post(CONTENT, "k").content == first.content
    assert len(api.codes()) == 1


@pytest.mark.spec("idempotency.scope", "limits.idempotency")
def test_the_key_is_scoped_to_the_api_key(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    one, two = caller(service), caller(service)
    assert one.post(CONTENT, "k").status_code == 201
    assert two.post(RESERIALISED["another value"], "k").status_code == 201
    assert two.post(CONTENT, "k2").status_code == 201


REFUSED: list[tuple[dict[str, Any], dict[str, Any], tuple[int, int]]] = [
    ({}, {"data": ...}, (400, 19)),
    ({"view_protection": False}, {"passcode_verifier": "v" * 43}, (403, 53)),
]


@pytest.mark.parametrize(("switches", "changes", "refused"), REFUSED)
def test_a_refusal_is_not_stored_under_the_key(
    service: RunningService,
    api: Api,
    switches: dict[str, Any],
    changes: dict[str, Any],
    refused: tuple[int, int],
) -> None:
    service.set_account(**switches)
    assert refusal(api.create("k", **changes)) == refused
    assert refusal(api.create("k", **changes)) == refused
    assert api.create("k").status_code == 201


@pytest.mark.spec("limits.idempotency")
def test_after_24_hours_the_same_value_is_a_new_key(service: RunningService, api: Api) -> None:
    first = api.post(CONTENT, "k").json()["short_code"]
    service.advance(24 * 3600 - 1)
    assert api.post(CONTENT, "k").status_code == 200
    service.advance(1.5)
    second = api.post(RESERIALISED["another value"], "k")
    assert second.status_code == 201
    assert second.json()["short_code"] != first
    assert refusal(api.post(CONTENT, "k")) == (409, 105)


@pytest.mark.spec("idempotency.106", "errors.106", "idempotency.105")
@pytest.mark.parametrize("moment", ["shares.begun", "shares.committed"])
def test_a_second_call_while_the_first_is_in_flight_is_106(
    service: RunningService,
    api: Api,
    caller: Callable[..., Api],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    gate = Gate(moment)
    monkeypatch.setattr(service.service, "on_moment", gate)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(api.post, CONTENT, "k")
        try:
            assert gate.reached.wait(10)
            assert refusal(api.post(CONTENT, "k")) == (409, 106)
            assert refusal(api.post(RESERIALISED["one byte more"], "k")) == (409, 105)
            assert api.post(CONTENT, "another key").status_code == 201
            assert caller(service).post(CONTENT, "k").status_code == 201
        finally:
            gate.opened.set()
        answered = first.result()
    assert answered.status_code == 201
    assert (api.post(CONTENT, "k").status_code, api.post(CONTENT, "k").content) == (
        200,
        answered.content,
    )


@pytest.mark.parametrize(("moment", "then"), [("shares.begun", 201), ("shares.committed", 200)])
def test_a_call_that_breaks_in_flight_leaves_no_marker(
    service: RunningService,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    moment: str,
    then: int,
) -> None:
    def fails(reached: str) -> None:
        if reached == moment:
            raise RuntimeError("the service has a bug")

    monkeypatch.setattr(service.service, "on_moment", fails)
    assert api.post(CONTENT, "k").status_code == 500
    monkeypatch.setattr(service.service, "on_moment", lambda _: None)
    assert api.post(CONTENT, "k").status_code == then
    assert len(api.codes()) == 1
    assert "the service has a bug" in caplog.text


@pytest.mark.spec("idempotency.106")
def test_of_many_callers_at_once_exactly_one_creates(api: Api) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: api.post(CONTENT, "k"), range(60)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(201) == 1
    assert set(statuses) <= {200, 201, 409}
    assert {refusal(answer) for answer in answers if answer.status_code == 409} <= {(409, 106)}
    assert len({answer.content for answer in answers if answer.is_success}) == 1
    assert len(api.codes()) == 1
