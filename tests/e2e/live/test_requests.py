"""The routes of secure requests, and stats (specification: Endpoints, from POST /v1/requests
on).
"""

from __future__ import annotations

from datetime import date

import pytest

from e2e.live.target import PUBLIC_KEY, Caller, body, fresh_key, moment, soon
from support.terminal import refusal


def test_a_create_echoes_the_public_key_and_it_is_shown_while_active(api: Caller) -> None:
    end = soon()
    response = api.create("requests", expired_at=end)
    assert response.status_code == 201
    told = response.json()
    assert told["short_code"] not in ("", ".", "..")
    assert moment(told["expired_at"]) == moment(end)
    assert told["public_key"] == PUBLIC_KEY
    shown = api.get(f"/requests/{told['short_code']}")
    assert shown.status_code == 200
    assert {name: shown.json()[name] for name in told} == told


def test_idempotency_is_that_of_shares(api: Caller) -> None:
    key, content = fresh_key(), body("requests")
    first, second = api.post("requests", content, key), api.post("requests", content, key)
    assert (first.status_code, second.status_code, second.content) == (201, 200, first.content)
    assert refusal(api.post("requests", content + b" ", key)) == (409, 105)
    assert refusal(api.post("requests", content, None)) == (400, 104)


def test_the_list_is_newest_first_with_public_keys(api: Caller) -> None:
    codes = [api.created("requests") for _ in range(2)]
    items = [
        item
        for item in api.get("/requests?limit=100").json()["requests"]
        if item["short_code"] in codes
    ]
    assert [item["short_code"] for item in items] == codes[::-1]
    assert [item["public_key"] for item in items] == [PUBLIC_KEY] * 2


@pytest.mark.parametrize(
    ("query", "page", "limit"), [("?page=-1&limit=0", 1, 25), ("?page=x&limit=1000", 1, 100)]
)
def test_paging_is_corrected_and_never_rejected(
    api: Caller, query: str, page: int, limit: int
) -> None:
    response = api.get(f"/requests{query}")
    assert response.status_code == 200
    told = response.json()
    assert isinstance(told["requests"], list)
    assert (told["pagination"]["page"], told["pagination"]["limit"]) == (page, limit)
    assert {"page", "limit", "total_pages", "total"} <= told["pagination"].keys()


def test_the_first_delete_expires_and_submissions_stay_readable(api: Caller) -> None:
    code = api.created("requests")
    response = api.delete_request(code)
    assert (response.status_code, response.json()) == (
        200,
        {"short_code": code, "outcome": "expired"},
    )
    told = api.get(f"/requests/{code}").json()
    assert (told["short_code"], told["expired_at"], told.get("public_key")) == (code, None, None)
    assert code not in api.listed("requests")
    submissions = api.get(f"/requests/{code}/submissions")
    assert submissions.status_code == 200
    assert submissions.json() == {
        "submissions": [],
        "count": 0,
        "skipped_not_end_to_end_encrypted": 0,
    }


def test_the_second_delete_is_for_good(api: Caller) -> None:
    """The one request that is deleted twice (and once more), made for that."""
    code = api.created("requests")
    assert api.delete_request(code).json()["outcome"] == "expired"
    response = api.delete_request(code, times=2)
    assert (response.status_code, response.json()) == (
        200,
        {"short_code": code, "outcome": "deleted"},
    )
    assert refusal(api.delete_request(code, times=3)) == (404, 70)
    assert refusal(api.get(f"/requests/{code}")) == (404, 70)


def test_a_code_that_never_was_is_404(api: Caller) -> None:
    assert refusal(api.get("/requests/sealpipe-never-made-this")) == (404, 70)


def test_stats_are_figures_with_fourteen_days_oldest_first(api: Caller) -> None:
    response = api.get("/stats")
    assert response.status_code == 200
    told = response.json()
    assert {"active", "expired", "total_viewed"} <= told["shares"].keys()
    assert all(isinstance(count, int) and count >= 0 for count in told["shares"].values())
    days = [date.fromisoformat(row["date"]) for row in told["daily_views"]]
    assert [(day - days[0]).days for day in days] == list(range(14))
    assert all(isinstance(row["count"], int) and row["count"] >= 0 for row in told["daily_views"])
