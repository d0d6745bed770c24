"""POST /v1/requests: every member, every refusal, idempotency, the default expiry (gaps: its body
and response).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import parse_rfc3339
from service.callers import PAIR, PUBLIC_KEY, Api, by_hand, refusal, request_body, rows
from support.damage import flipped

CONTENT = json.dumps(request_body(title="first")).encode()
DAY = 24 * 3600
OTHER_KEY = (  # the curve's generator
    "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
)

REJECTED: dict[str, list[Any]] = {
    "title": [..., None, "", "  ", 1, [], "\ud800"],
    "public_key": [
        ...,
        None,
        "",
        1,
        PUBLIC_KEY[:-1],
        PUBLIC_KEY + "=",
        "A" * 87,
        base64.urlsafe_b64encode(b"\x02" + PAIR.public_key[1:33]).decode().rstrip("="),
        base64.urlsafe_b64encode(flipped(PAIR.public_key)).decode().rstrip("="),
    ],
    "fields": [
        ...,
        None,
        "Password",
        {"item": "x", "type": "text"},
        ["x"],
        [{"key": "x", "type": "text"}],
        [{"item": "", "type": "text"}],
        [{"item": "x", "type": 1}],
    ],
    "description": [1, [], "\udfff"],
    "expired_at": [
        "",
        "tomorrow",
        1893456000,
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-13-01T00:00:00Z",
    ],
    "max_submission": [0, -1, 1.5, "1", True, []],
    "access_counts_left": [0, -1, 1.0, "1", True, 2**63],
    "passcode": ["", " ", 1, []],
    "requires_login": [1, "true", []],
    "requires_mfa": [0, "false", {}],
    "restricted_domain": ["example.org", [1], [""], {}],
    "ip_whitelist": ["10.0.0.0/8", [10], [""], {}],
    "organization_id": ["", 1, []],
}
ACCEPTED: dict[str, list[Any]] = {
    "title": ["Zug\u00e4nge \U0001f511"],
    "fields": [
        [],
        [{"item": "x"}, {"item": "y", "type": None}],
        [{"item": "URL", "type": "url", "hint": "kept out"}, {"item": "QR", "type": "whatever"}],
    ],
    "description": ["", "d", None],
    "expired_at": ["2099-01-01T00:00:00+02:00", None],
    "max_submission": [1, 2**63 - 1, None],
    "access_counts_left": [1, None],
    "passcode": ["0", "correct horse", None],
    "requires_login": [True, False, None],
    "requires_mfa": [True, False, None],
    "restricted_domain": [[], ["example.org"], None],
    "ip_whitelist": [[], ["192.0.2.1", "10.0.0.0/8"], None],
    "organization_id": ["org-1", None],
    "a_member_that_no_rule_names": [1],
}


@pytest.mark.spec(
    "route.requests.create",
    "request.create.returns",
    "scopes.requests-write",
    "gap.request-create.response",
)
def test_a_request_is_201_with_three_members(api: Api) -> None:
    response = api.ask(expired_at="2099-01-01T00:00:00Z")
    assert response.status_code == 201
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "short_code": api.codes(what="requests")[0],
        "expired_at": "2099-01-01T00:00:00Z",
        "public_key": PUBLIC_KEY,
    }


@pytest.mark.spec("errors.19", "gap.request-create.body")
@pytest.mark.parametrize(("name", "value"), rows(REJECTED), ids=lambda value: ascii(value)[:40])
def test_a_member_that_breaks_its_rule_is_named(api: Api, name: str, value: Any) -> None:
    response = api.ask(**{name: value})
    assert refusal(response) == (400, 19)
    assert list(response.json()["additional_data"]) == [name]
    assert api.codes(what="requests") == []


@pytest.mark.spec("gap.request-create.body")
@pytest.mark.parametrize(("name", "value"), rows(ACCEPTED), ids=lambda value: ascii(value)[:40])
def test_a_member_that_keeps_its_rule_is_accepted(api: Api, name: str, value: Any) -> None:
    assert api.ask(**{name: value}).status_code == 201


def test_all_rejected_members_are_named_at_once(api: Api) -> None:
    reasons = api.ask(title=..., fields=1, passcode="", max_submission=0).json()["additional_data"]
    assert set(reasons) == {"title", "fields", "passcode", "max_submission"}
    assert all(isinstance(reason, str) and reason for reason in reasons.values())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff{}"])
def test_what_is_not_a_json_object_is_a_validation_failure(api: Api, content: bytes) -> None:
    response = api.post_request(content)
    assert (refusal(response), response.json()["additional_data"]) == ((400, 19), {})


@pytest.mark.spec("gap.request-create.body")
def test_left_out_a_request_ends_after_30_days(service: RunningService, api: Api) -> None:
    before = service.service.clock.now()
    expired_at = parse_rfc3339(api.ask().json()["expired_at"])
    assert expired_at is not None
    assert timedelta(days=30, seconds=-1) <= expired_at - before <= timedelta(days=30, seconds=10)
    service.advance(30 * DAY - 60)
    assert len(api.codes(what="requests")) == 1
    service.advance(61)
    assert api.codes(what="requests") == []


@pytest.mark.spec("gap.request-create.body")
@pytest.mark.parametrize("key", [None, "", "  "])
def test_the_idempotency_key_is_required_here_too(
    service: RunningService, api: Api, key: str | None
) -> None:
    headers = {"Authorization": api.bearer} | ({} if key is None else {"Idempotency-Key": key})
    status, envelope = by_hand(service, "POST", "/v1/requests", headers)
    assert (status, envelope["error_code"]) == (400, 104)


@pytest.mark.spec("gap.request-create.body")
def test_idempotency_is_that_of_shares(
    service: RunningService, api: Api, caller: Callable[..., Api]
) -> None:
    first = api.post_request(CONTENT, "k")
    replay = api.post_request(CONTENT, "k")
    assert (first.status_code, replay.status_code, replay.content) == (201, 200, first.content)
    assert refusal(api.post_request(CONTENT + b" ", "k")) == (409, 105)
    assert caller(service).post_request(CONTENT, "k").status_code == 201
    assert len(api.codes(what="requests")) == 2
    service.advance(DAY + 1)
    assert api.post_request(CONTENT, "k").status_code == 201


@pytest.mark.spec("idempotency.scope")
def test_an_idempotency_key_is_the_api_keys_whatever_it_was_used_for(api: Api) -> None:
    api.post_request(CONTENT, "k")
    assert refusal(api.create("k")) == (409, 105)


def test_a_refusal_is_not_stored_under_the_key(api: Api) -> None:
    assert refusal(api.ask("k", title="")) == (400, 19)
    assert api.ask("k").status_code == 201


@pytest.mark.spec("gap.request-create.body")
def test_of_a_passcode_only_the_hash_is_kept(service: RunningService, api: Api) -> None:
    for key in (PUBLIC_KEY, OTHER_KEY):
        api.asked(passcode="correct horse battery", public_key=key)
    kept = service.service.database.rows("SELECT * FROM requests", {})
    assert "correct horse" not in str([tuple(row) for row in kept])
    hashes = {row["passcode_sha256"] for row in kept}
    assert len(hashes) == 2, "each has to be guessed by itself"
    assert hashlib.sha256(b"correct horse battery").hexdigest() not in hashes


def test_no_record_of_a_body_tells_whether_a_guessed_passcode_was_in_it(
    service: RunningService, api: Api
) -> None:
    made = api.ask("k", passcode="correct horse battery")
    assert made.status_code == 201
    (record,) = service.service.database.rows("SELECT * FROM idempotency", {})
    guess = made.request.content  # all else of a body stands in the tables
    assert b"correct horse battery" in guess
    (key,) = service.service.database.rows("SELECT * FROM keys", {})
    known = ["", *(str(value) for value in dict(key).values())]
    for hashed in (
        hashlib.sha256(guess).hexdigest(),
        *(hmac.digest(each.encode(), guess, "sha256").hex() for each in known),
    ):
        assert hashed not in [str(value) for value in dict(record).values()]
    assert len(record["body_mac"]) == 64
