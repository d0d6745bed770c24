"""The private route of whoever asked: what was sent, sealed as it is, for the access link's
page.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.openapi import document
from service.callers import PUBLIC_KEY, Api


def told(service: RunningService, code: str) -> tuple[int, Any]:
    return send_request(service.origin, "GET", f"/links/requests/{code}/submissions")


def send(service: RunningService, code: str, data: str, **members: Any) -> str:
    return service.submitter().send(f"{service.link_base_url}/r/{code}", data, **members)


def test_the_owner_gets_what_the_api_gives_and_which_key_it_is_sealed_to(
    service: RunningService, api: Api
) -> None:
    code = api.asked(title="Access", max_submission=5, expired_at="2099-01-01T00:00:00Z")
    sent = [send(service, code, data) for data in ("AAAA", "BBBB")]
    send(service, code, "CCCC", encryption_type="none")
    of_api = api.http.get(f"/requests/{code}/submissions").json()
    status, value = told(service, code)
    assert status == 200
    assert [each["short_code"] for each in value["submissions"]] == sent
    assert value == of_api | {
        "short_code": code,
        "title": "Access",
        "public_key": PUBLIC_KEY,
        "max_submission": 5,
        "expired_at": "2099-01-01T00:00:00Z",
        "received": 3,
    }
    assert "CCCC" not in str(value)


def test_an_expired_request_keeps_its_answers_and_its_key_and_a_removed_one_is_gone(
    service: RunningService, api: Api
) -> None:
    code = api.asked()
    send(service, code, "AAAA")
    api.http.delete(f"/requests/{code}")
    status, value = told(service, code)
    assert (status, value["expired_at"], value["public_key"], value["count"]) == (
        200,
        None,
        PUBLIC_KEY,
        1,
    )
    api.http.delete(f"/requests/{code}")
    status, value = told(service, code)
    assert (status, value["reason"]) == (404, "not-found")


def test_looking_changes_nothing(service: RunningService, api: Api) -> None:
    code = api.asked(access_counts_left=1, passcode="pc", requires_login=True)
    before = api.http.get(f"/requests/{code}").json()
    for _ in range(3):
        assert told(service, code)[0] == 200
    assert api.http.get(f"/requests/{code}").json() == before
    assert service.submitter().submit(
        f"{service.link_base_url}/r/{code}", {}, passcode="pc", signed_in_as="a@example.org"
    )


@pytest.mark.parametrize(
    "headers", [{"origin": "https://elsewhere.example"}, {"host": "elsewhere.example"}]
)
def test_no_page_of_elsewhere_is_answered(
    service: RunningService, api: Api, headers: dict[str, str]
) -> None:
    path = f"{service.origin}/links/requests/{api.asked()}/submissions"
    assert httpx.get(path, headers=headers, trust_env=False).status_code == 403


def test_it_is_no_part_of_the_api() -> None:
    assert not [path for path in document()["paths"] if "links" in path]
