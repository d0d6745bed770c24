"""The endpoint methods of a client, against the rehearsal service."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from sealpipe import (
    IdempotencyConflictError,
    MissingScopeError,
    NotFoundError,
    ProtocolError,
    Secret,
    UsageError,
)
from sealpipe.wire import fields, sealed_box
from sealpipe.wire.encoding import encode_base64url
from sealpipe.wire.keys import from_seed
from support.faults import rewrites
from support.faulty import Faulty
from support.job import FIELDS, PAIR, Caller, Job, made, submitted

PUBLIC_KEY = encode_base64url(PAIR.public_key)
REQUEST = {"title": "Staging login", "public_key": PAIR.public_key, "fields": FIELDS}
IN_AN_HOUR = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
Proxied = Callable[..., Faulty]
CallAt = Callable[[str], Caller]


def test_a_request_is_made_with_every_member_as_the_service_takes_it(
    proxied: Proxied, call_at: CallAt
) -> None:
    server = proxied()
    created = call_at(server.base_url)(
        "create_request",
        **REQUEST,
        description="for the staging host",
        expires_at=IN_AN_HOUR,
        max_submissions=3,
        views=9,
        passcode=Secret("open sesame"),
        requires_login=True,
        requires_mfa=False,
        restricted_domains=["example.com"],
        ip_whitelist=["192.0.2.1"],
        organization_id="org-1",
        idempotency_key="k-1",
    )
    assert (created.expires_at, created.public_key, created.replayed) == (
        IN_AN_HOUR,
        PUBLIC_KEY,
        False,
    )
    (sent,) = server.received()
    assert sent.header("idempotency-key") == "k-1"
    assert json.loads(sent.body) == {
        "title": "Staging login",
        "public_key": PUBLIC_KEY,
        "fields": [{"item": "Password", "type": "password"}, {"item": "Note", "type": "multiline"}],
        "description": "for the staging host",
        "expired_at": IN_AN_HOUR.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "max_submission": 3,
        "access_counts_left": 9,
        "passcode": "open sesame",
        "requires_login": True,
        "requires_mfa": False,
        "restricted_domain": ["example.com"],
        "ip_whitelist": ["192.0.2.1"],
        "organization_id": "org-1",
    }


def test_what_is_left_out_is_not_sent_and_a_request_without_an_end_has_thirty_days(
    proxied: Proxied, call_at: CallAt
) -> None:
    server = proxied()
    created = call_at(server.base_url)("create_request", **REQUEST)
    assert json.loads(server.received()[0].body).keys() == {"title", "public_key", "fields"}
    assert abs(created.expires_at - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"fields": ()}, UsageError),
        ({"public_key": b"\x04" + bytes(64)}, UsageError),
        ({"public_key": PAIR.public_key[:33]}, UsageError),
        ({"title": "\ud800"}, UsageError),
    ],
    ids=["no fields", "a point that is not on the curve", "a short key", "half a character"],
)
def test_what_cannot_be_a_request_is_refused_before_anything_is_sent(
    changed: dict[str, object], error: type[Exception], proxied: Proxied, call_at: CallAt
) -> None:
    server = proxied()
    with pytest.raises(error):
        call_at(server.base_url)("create_request", **{**REQUEST, **changed})
    assert server.received() == []


def test_the_same_bytes_under_the_same_key_are_a_replay_and_other_bytes_a_conflict(
    call: Caller,
) -> None:
    first = call("create_request", **REQUEST, idempotency_key="again")
    second = call("create_request", **REQUEST, idempotency_key="again")
    assert (second.short_code, second.replayed) == (first.short_code, True)
    with pytest.raises(IdempotencyConflictError):
        call("create_request", **{**REQUEST, "title": "another"}, idempotency_key="again")


def test_an_answer_under_another_public_key_is_refused_and_says_why(
    proxied: Proxied, call_at: CallAt
) -> None:
    other = encode_base64url(from_seed(bytes(32)).public_key)
    caller = dataclasses.replace(
        call_at(proxied(then=rewrites(public_key=other)).base_url), deadline=30
    )
    with pytest.raises(ProtocolError, match="with another public key than the one sent"):
        caller("create_request", **REQUEST)


def test_an_answer_that_does_not_repeat_the_public_key_is_let_pass(
    proxied: Proxied, call_at: CallAt
) -> None:
    created = call_at(proxied(rewrites(public_key=..., colour="red")).base_url)(
        "create_request", **REQUEST
    )
    assert (created.public_key, created.extra) == (None, {"colour": "red"})


def test_a_request_is_read_and_tells_the_services_clock(call: Caller, job: Job) -> None:
    code = made(job, expires_at=IN_AN_HOUR)
    seen = call("get_request", code)
    assert (seen.short_code, seen.expires_at, seen.public_key) == (code, IN_AN_HOUR, PUBLIC_KEY)
    assert abs(seen.answered_at - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.usefixtures("extended")
def test_one_that_has_ended_is_read_without_time_and_key(call: Caller, job: Job) -> None:
    code = made(job)
    call("expire_request", code)
    seen = call("get_request", code)
    assert (seen.expires_at, seen.public_key) == (None, None)
    assert code in [row.short_code for row in call("list_requests", status="expired").items]
    assert code not in [row.short_code for row in call("list_requests").items]


def test_an_answer_about_another_request_is_refused(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    caller = dataclasses.replace(
        call_at(proxied(then=rewrites(short_code="other")).base_url), deadline=30
    )
    with pytest.raises(ProtocolError, match="about another request"):
        caller("get_request", made(job))


def test_submissions_come_as_ciphertext_that_the_key_pair_opens(call: Caller, job: Job) -> None:
    code = made(job)
    codes = submitted(job, code, "first", "second")
    found = call("list_submissions", code)
    assert [row.short_code for row in found.items] == codes
    assert (found.count, found.skipped) == (2, 0)
    opened = [fields.load(sealed_box.open(PAIR, row.data)) for row in found.items]
    assert [[field.value for field in row if field.key == "Password"] for row in opened] == [
        ["first"],
        ["second"],
    ]
    assert all(row.created_at.tzinfo for row in found.items)
    assert found.items[0].data not in repr(found)


def test_submissions_that_are_cut_short_do_not_pass_for_all_there_are(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    code = made(job)
    caller = dataclasses.replace(call_at(proxied(then=rewrites(count=2)).base_url), deadline=30)
    with pytest.raises(ProtocolError, match="counts 2 submissions, but returned 0"):
        caller("list_submissions", code)


def test_the_bare_delete_expires_first_and_destroys_second(call: Caller, job: Job) -> None:
    code = made(job)
    submitted(job, code, "x")
    assert call("delete_request", code).outcome == "expired"
    assert call("list_submissions", code).count == 1
    assert call("delete_request", code).outcome == "deleted"
    with pytest.raises(NotFoundError) as caught:
        call("delete_request", code)
    assert (caught.value.status, caught.value.error_code) == (404, 70)


@pytest.mark.parametrize(
    "name", ["get_request", "list_submissions", "delete_request", "expire_request"]
)
def test_a_request_that_was_never_there_is_missing(name: str, call: Caller) -> None:
    with pytest.raises(NotFoundError):
        call(name, "nowhere")


@pytest.mark.parametrize(
    "name", ["get_request", "list_submissions", "delete_request", "expire_request"]
)
@pytest.mark.parametrize("code", ["", ".", ".."])
def test_what_is_no_short_code_is_refused_before_anything_is_sent(
    name: str, code: str, proxied: Proxied, call_at: CallAt
) -> None:
    server = proxied()
    with pytest.raises(UsageError):
        call_at(server.base_url)(name, code)
    assert server.received() == []


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ("requests:read", "delete_request"),
        ("requests:write", "get_request"),
        ("requests:write", "list_submissions"),
        ("shares:read", "list_requests"),
    ],
)
def test_a_key_without_the_scope_gets_a_missing_scope_error(
    scope: str, name: str, call: Caller, job: Job
) -> None:
    code = made(job)
    key = job.service.create_key(account=job.account, scopes=[scope]).reveal()
    with pytest.raises(MissingScopeError):
        dataclasses.replace(call, api_key=key)(name, *([] if name == "list_requests" else [code]))
