"""POST /v1/shares: every member, every refusal, custody (specification: Share create body, rules
1-6).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from service.callers import DATA, TOKEN, WRAP, Api, body, refusal, rows

REJECTED: dict[str, list[Any]] = {
    "encryption_type": [..., None, "", "plaintext", "E2EE-AES256-GCM", 1, ["x"]],
    "data": [..., None, "", "  ", 7, ["x"], {"x": 1}, "\ud800"],
    "access_token": [..., None, "", "short", "t" * 44, "t" * 42 + "=", "+" * 43, 1],
    "passcode_verifier": ["", "a b", "v=", 1, True, []],
    "title": [1, True, ["x"], {}, "\ud800"],
    "description": [1, False, [], "\udfff"],
    "expired_at": [
        "",
        "tomorrow",
        1893456000,
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-01-01 00:00:00Z",
        "2030-13-01T00:00:00Z",
        "2030-01-01T00:00Z",
        "2030-01-01T00:00:00+0100",
        "0001-01-01T00:00:00+23:59",
        "2030-01-01T00:00:00Z ",
    ],
    "access_counts_left": [0, -1, 1.5, 1.0, "1", True, [], 2**63],
    "item_key_wrap": ["", "not base64!", WRAP[:-1], 1, []],
    "timed_view": [0, -1, 1.5, "30", True, {}],
    "notify_on": ["viewed", ["opened"], ["viewed", "viewed"], [1], {}, 1],
    "organization_id": ["", 1, [], True],
}

ACCEPTED: dict[str, list[Any]] = {
    "data": ["not an envelope, not even base64", base64.b64encode(b"shorter than 44").decode()],
    "access_token": ["-_" + "0" * 41, f" {TOKEN}\n"],
    "passcode_verifier": ["v" * 43, None],
    "title": ["", "Datenbank \u00c4\u00d6\x00 \U0001f511 \u2028", None],
    "description": ["x" * 100_000, None],
    "expired_at": ["2099-01-01T00:00:00Z", None],
    "access_counts_left": [1, 2**63 - 1, None],
    "item_key_wrap": [WRAP, None],
    "timed_view": [30, None],
    "notify_on": [[], ["viewed", "denied", "expired", "deleted"], None],
    "organization_id": ["org-1", None],
    "a_member_that_no_rule_names": [{"x": [1]}],
}


@pytest.mark.spec(
    "route.shares.create",
    "share.create.201",
    "share.created.short_code",
    "share.created.expired_at",
    "share.created.custody",
    "rules.no-url",
    "scopes.shares-write",
)
def test_a_share_is_201_with_three_members(api: Api) -> None:
    response = api.create()
    assert response.status_code == 201
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"short_code": api.codes()[0], "expired_at": None, "custody": "none"}


@pytest.mark.spec(
    "share.encryption_type",
    "share.data",
    "share.access_token",
    "share.passcode_verifier",
    "share.title",
    "share.description",
    "share.create.expired_at",
    "share.access_counts_left",
    "share.item_key_wrap",
    "rules.19-encryption",
    "rules.19-token",
    "errors.19",
    "gap.share-members",
)
@pytest.mark.parametrize(("name", "value"), rows(REJECTED), ids=lambda value: ascii(value)[:40])
@pytest.mark.usefixtures("extended")
def test_a_member_that_breaks_its_rule_is_named(api: Api, name: str, value: Any) -> None:
    response = api.create(**{name: value})
    assert refusal(response) == (400, 19)
    assert list(response.json()["additional_data"]) == [name]
    assert api.codes() == []


@pytest.mark.spec(
    "share.data",
    "share.access_token",
    "share.passcode_verifier",
    "share.title",
    "share.description",
    "share.create.expired_at",
    "share.access_counts_left",
    "share.item_key_wrap",
    "rules.not-validated",
    "wire.mismatch-posts",
    "gap.share-members",
)
@pytest.mark.parametrize(("name", "value"), rows(ACCEPTED), ids=lambda value: ascii(value)[:40])
def test_a_member_that_keeps_its_rule_is_accepted(api: Api, name: str, value: Any) -> None:
    assert api.create(**{name: value}).status_code == 201


@pytest.mark.spec("rules.19-token", "envelope.error")
@pytest.mark.usefixtures("extended")
def test_all_rejected_members_are_named_at_once(api: Api) -> None:
    response = api.create(data=..., access_token=1, title=[], notify_on=["x"])
    reasons = response.json()["additional_data"]
    assert set(reasons) == {"data", "access_token", "title", "notify_on"}
    assert all(isinstance(reason, str) and reason for reason in reasons.values())


@pytest.mark.spec("rules.19-token")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"1",
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        b'{"data": NaN}',
        b"[" * 100_000,
        b'{"access_counts_left": ' + b"9" * 5000 + b"}",
        "{}".encode("utf-16"),
    ],
    ids=lambda content: ascii(content[:12]),
)
def test_what_is_not_a_json_object_is_a_validation_failure(api: Api, content: bytes) -> None:
    response = api.post(content)
    assert refusal(response) == (400, 19)
    assert response.json()["additional_data"] == {}


@pytest.mark.spec("share.created.expired_at", "share.create.expired_at")
@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00+02:00", "2030-01-01T10:00:00Z"),
        ("2030-01-01t12:00:00z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00.25Z", "2030-01-01T12:00:00.250000Z"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
    ],
)
def test_the_expiry_comes_back_as_the_same_moment_in_utc(
    api: Api, sent: str, answered: str
) -> None:
    response = api.create(expired_at=sent)
    assert response.json()["expired_at"] == answered
    shown = api.http.get(f"/shares/{response.json()['short_code']}").json()
    assert shown["expired_at"] == answered


@pytest.mark.spec("rules.stores-verbatim", "share.data")
def test_data_is_stored_byte_for_byte(service: RunningService, api: Api) -> None:
    data = "  +/== \t\u00e9\U0001f511 and so on\r\n"
    api.created(data=data)
    row = service.service.database.row("SELECT data FROM shares", {})
    assert row is not None
    assert row["data"] == data


@pytest.mark.spec("share.access_token", "rules.stores-hash", "token.trimmed-hash")
def test_of_token_and_verifier_the_service_keeps_the_hash_of_the_trimmed_value(
    service: RunningService, api: Api
) -> None:
    api.created(access_token=f"  {TOKEN} ", passcode_verifier="v" * 43)
    row = service.service.database.row("SELECT * FROM shares", {})
    assert row is not None
    assert row["access_token_sha256"] == hashlib.sha256(TOKEN.encode()).hexdigest()
    known = f"{TOKEN}.{'v' * 43}"  # without the token, nobody can check a guess of the passcode
    assert row["passcode_verifier_sha256"] == hashlib.sha256(known.encode()).hexdigest()
    assert TOKEN not in str(tuple(row))
    assert "v" * 43 not in str(tuple(row))


@pytest.mark.spec("share.created.short_code")
def test_short_codes_differ_and_a_taken_one_is_drawn_again(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = iter([bytes(9), bytes(9), bytes([255] * 9)])
    monkeypatch.setattr(service.service, "token_bytes", lambda _: next(draws))
    assert [api.created(), api.created()] == ["A" * 12, "_" * 12]


CUSTODY: list[tuple[str, bool, dict[str, Any], str | None]] = [
    # requested, registered, account's switches, what a wrap ends in (None: refused)
    ("none", True, {}, None),
    ("none", False, {}, None),
    ("self", False, {}, None),
    ("self", True, {}, "stored"),
    ("account", False, {}, None),
    ("account", True, {}, "stored"),
    ("self", True, {"zero_knowledge_enrolled": False}, "failed"),
    ("self", True, {"zero_knowledge_feature": False}, "failed"),
    ("self", True, {"zero_knowledge_enrolled": False, "zero_knowledge_feature": False}, "failed"),
]


@pytest.mark.spec(
    "rules.19-wrap", "rules.custody-failed", "share.created.custody", "share.item_key_wrap"
)
@pytest.mark.parametrize(("level", "register", "switches", "custody"), CUSTODY)
def test_custody_follows_level_registration_and_account(
    service: RunningService,
    caller: Callable[..., Api],
    level: str,
    register: bool,  # noqa: FBT001  # a column of the table
    switches: dict[str, Any],
    custody: str | None,
) -> None:
    api = caller(service, custody=level, register=register)
    service.set_account(**switches)
    assert api.create().json()["custody"] == "none"
    response = api.create(item_key_wrap=WRAP)
    if custody is None:
        assert refusal(response) == (400, 19)
        assert list(response.json()["additional_data"]) == ["item_key_wrap"]
        return
    assert (response.status_code, response.json()["custody"]) == (201, custody)
    row = service.service.database.row("SELECT item_key_wrap FROM shares ORDER BY number DESC", {})
    assert row is not None
    assert row["item_key_wrap"] == (WRAP if custody == "stored" else None)


@pytest.mark.spec("rules.53", "errors.53", "share.passcode_verifier")
def test_a_verifier_on_a_plan_without_view_protection_is_53(
    service: RunningService, api: Api
) -> None:
    service.set_account(view_protection=False)
    assert refusal(api.create(passcode_verifier="v" * 43)) == (403, 53)
    assert api.codes() == []
    assert api.create().status_code == 201


def test_validation_comes_before_the_plan(service: RunningService, api: Api) -> None:
    service.set_account(view_protection=False)
    assert refusal(api.create(passcode_verifier="v" * 43, title=1)) == (400, 19)


def test_duplicated_members_do_no_harm(api: Api) -> None:
    content = json.dumps(body()).encode()[:-1] + b', "title": 1, "title": "last"}'
    assert api.post(content).status_code == 201


def test_ten_megabytes_are_one_share(service: RunningService, api: Api) -> None:
    data = DATA * (10 * 1024 * 1024 // len(DATA))
    api.created(data=data)
    row = service.service.database.row("SELECT LENGTH(data) FROM shares", {})
    assert row is not None
    assert row[0] == len(data)
