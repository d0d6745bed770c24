"""The share routes (specification: Endpoints, from POST /v1/shares to DELETE
/v1/shares/{shortCode}).
"""

from __future__ import annotations

from typing import Any

import pytest

from e2e.live.target import Caller, body, fresh_key, moment, soon
from support.terminal import refusal


def test_a_create_answers_201_and_metadata_has_exactly_two_members(api: Caller) -> None:
    end = soon()
    response = api.create("shares", expired_at=end)
    assert response.status_code == 201
    told = response.json()
    assert {"short_code", "expired_at", "custody"} <= told.keys()
    assert told["short_code"] not in ("", ".", "..")
    assert moment(told["expired_at"]) == moment(end)
    assert told["custody"] == "none"
    shown = api.get(f"/shares/{told['short_code']}")
    assert (shown.status_code, shown.json()) == (
        200,
        {name: told[name] for name in ("short_code", "expired_at")},
    )


def test_the_same_bytes_under_the_same_key_are_replayed_and_one_byte_more_is_105(
    api: Caller,
) -> None:
    key, content = fresh_key(), body("shares")
    first, second = api.post("shares", content, key), api.post("shares", content, key)
    assert (first.status_code, second.status_code, second.content) == (201, 200, first.content)
    assert refusal(api.post("shares", content + b" ", key)) == (409, 105)
    assert api.listed("shares").count(first.json()["short_code"]) == 1


@pytest.mark.parametrize("key", [None, ""])
def test_a_create_without_an_idempotency_key_is_104(api: Caller, key: str | None) -> None:
    assert refusal(api.post("shares", body("shares"), key)) == (400, 104)


@pytest.mark.parametrize(("member", "value"), [("encryption_type", "none"), ("access_token", ...)])
def test_a_member_that_is_wrong_is_19_and_named(api: Caller, member: str, value: Any) -> None:
    response = api.create("shares", **{member: value})
    assert refusal(response) == (400, 19)
    reasons = response.json()["additional_data"]
    assert member in reasons
    assert all(isinstance(reason, str) for reason in reasons.values())


def test_the_list_is_newest_first(api: Caller) -> None:
    codes = [api.created("shares") for _ in range(2)]
    assert [code for code in api.listed("shares") if code in codes] == codes[::-1]


@pytest.mark.parametrize(
    ("query", "page", "limit"), [("?page=0&limit=ten", 1, 25), ("?page=2&limit=101", 2, 100)]
)
def test_paging_is_corrected_and_never_rejected(
    api: Caller, query: str, page: int, limit: int
) -> None:
    response = api.get(f"/shares{query}")
    assert response.status_code == 200
    told = response.json()
    assert isinstance(told["shares"], list)
    assert len(told["shares"]) <= limit
    assert (told["pagination"]["page"], told["pagination"]["limit"]) == (page, limit)
    total = told["pagination"]["total"]
    assert told["pagination"]["total_pages"] in (-(-total // limit), max(1, -(-total // limit)))


def test_an_expired_share_is_gone(api: Caller) -> None:
    code = api.created("shares")
    response = api.expire_share(code)
    assert (response.status_code, response.json()) == (200, {"success": True, "message": "ok"})
    assert refusal(api.expire_share(code)) == (404, 1)
    assert refusal(api.get(f"/shares/{code}")) == (404, 1)
    assert code not in api.listed("shares")


def test_a_code_that_never_was_is_404(api: Caller) -> None:
    assert refusal(api.get("/shares/sealpipe-never-made-this")) == (404, 1)
