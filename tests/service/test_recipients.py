"""The private route of a recipient: proofs, views, attempts; nothing is spent by looking."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.database.access import Row
from sealpipe_service.database.sqlite import Connection
from service.callers import DATA, TOKEN, Api

VERIFIER = "v" * 43


def look(service: RunningService, code: str) -> tuple[int, Any]:
    return send_request(service.origin, "GET", f"/links/shares/{code}")


def opening(service: RunningService, code: str, **proof: Any) -> tuple[int, Any]:
    return send_request(
        service.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN, **proof}
    )


@pytest.mark.spec(
    "share.access_counts_left", "share.exhausted", "rules.stores-verbatim", "gap.reading"
)
@pytest.mark.usefixtures("extended")
def test_the_token_gets_the_ciphertext_and_spends_a_view(service: RunningService, api: Api) -> None:
    code = api.created(access_counts_left=2, title="T", description="D", timed_view=9)
    assert opening(service, code) == (
        200,
        {
            "short_code": code,
            "encryption_type": "e2ee-aes256-gcm",
            "data": DATA,
            "title": "T",
            "description": "D",
            "expired_at": None,
            "timed_view": 9,
            "views_left": 1,
        },
    )
    assert opening(service, code)[1]["views_left"] == 0
    status, told = opening(service, code)
    assert (status, told["reason"]) == (410, "views")


def test_without_a_number_of_views_there_is_no_end_of_them(
    service: RunningService, api: Api
) -> None:
    code = api.created()
    assert [opening(service, code)[1]["views_left"] for _ in range(8)] == [None] * 8


def end_of(service: RunningService, link: str) -> str:
    """What a page tells a browser without scripts of the link's end."""
    page = httpx.get(f"{service.link_base_url}/{link}", trust_env=False)
    assert page.status_code == 200
    inside = page.text.partition("<noscript>")[2].partition("</noscript>")[0]
    return inside.partition("page.</p>")[2]


def test_without_scripts_a_page_says_in_utc_until_when_its_link_works(
    service: RunningService, api: Api
) -> None:
    end = (
        '<p>The link works until <time datetime="2055-02-01T03:04:05Z">Monday, 1 February '
        "2055, 03:04 UTC</time>.</p>"
    )
    share = api.created(expired_at="2055-02-01T08:49:05+05:45")
    made = api.asked(expired_at="2055-02-01T03:04:05Z")
    assert end_of(service, share) == end_of(service, f"r/{made}") == end


def test_a_page_says_no_end_that_its_script_would_not_learn(
    service: RunningService, api: Api
) -> None:
    """What has no end, is over, or does not exist."""
    used_up = api.created(access_counts_left=1, expired_at="2055-02-01T03:04:05Z")
    opening(service, used_up)
    for link in (api.created(), used_up, "nothing", "r/nothing"):
        assert end_of(service, link) == ""


def test_looking_and_the_link_page_spend_nothing(service: RunningService, api: Api) -> None:
    code = api.created(access_counts_left=1, passcode_verifier=VERIFIER)
    for _ in range(10):
        status, told = look(service, code)
        assert (status, told["passcode_required"], told["views_left"]) == (200, True, 1)
        page = httpx.get(f"{service.link_base_url}/{code}", trust_env=False)
        assert page.status_code == 200
        assert "does not count as opening" in page.text
    assert opening(service, code, passcode_verifier=VERIFIER)[0] == 200


@pytest.mark.parametrize("token", ["x" * 43, "", None, 1, [TOKEN], "\ud800", TOKEN[:-1]])
def test_a_wrong_token_is_404_and_spends_nothing(
    service: RunningService, api: Api, token: Any
) -> None:
    code = api.created(access_counts_left=1, passcode_verifier=VERIFIER)
    unknown = opening(service, "unknown", access_token=token)
    for _ in range(6):
        wrong = opening(service, code, access_token=token, passcode_verifier="w" * 43)
        assert wrong == unknown
        assert wrong[0] == 404
    assert opening(service, code, passcode_verifier=VERIFIER)[0] == 200


def test_a_wrong_token_does_not_even_learn_that_a_share_has_ended(
    service: RunningService, api: Api
) -> None:
    code = api.created(access_counts_left=1)
    opening(service, code)
    assert opening(service, code, access_token="x" * 43)[0] == 404


@pytest.mark.spec("share.exhausted", "share.used-up", "gap.order")
@pytest.mark.parametrize(
    ("verifier", "reason"),
    [
        ("w" * 43, "passcode-wrong"),
        (None, "passcode-required"),
        (5, "passcode-wrong"),
        ("", "passcode-required"),
    ],
)
def test_five_wrong_passcodes_end_a_share_and_spend_no_view(
    service: RunningService, api: Api, verifier: Any, reason: str
) -> None:
    code = api.created(access_counts_left=1, passcode_verifier=VERIFIER)
    for left in (4, 3, 2, 1, 0):
        status, told = opening(service, code, passcode_verifier=verifier)
        assert (status, told["reason"], told["attempts_left"]) == (403, reason, left)
    status, told = opening(service, code, passcode_verifier=VERIFIER)
    assert (status, told["reason"]) == (410, "attempts")
    assert look(service, code)[0] == 410


def test_the_right_passcode_opens_after_four_wrong_ones(service: RunningService, api: Api) -> None:
    code = api.created(passcode_verifier=VERIFIER)
    for _ in range(4):
        opening(service, code, passcode_verifier="w" * 43)
    assert opening(service, code, passcode_verifier=VERIFIER)[1]["data"] == DATA


def test_an_unrequested_passcode_is_ignored(service: RunningService, api: Api) -> None:
    code = api.created()
    assert opening(service, code, passcode_verifier="w" * 43)[0] == 200


def test_time_ends_a_share_for_its_recipient(service: RunningService, api: Api) -> None:
    code = api.created(expired_at="2001-01-01T00:00:00Z")
    status, told = opening(service, code)
    assert (status, told["reason"]) == (410, "time")


def test_one_view_is_one_view_for_many_at_once(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = api.created(access_counts_left=3)
    run = Connection.row

    def slow(connection: Connection, statement: str, /, **values: object) -> Row | None:
        time.sleep(0.02)  # between looking at what is left and spending it
        return run(connection, statement, **values)

    monkeypatch.setattr(Connection, "row", slow)
    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda _: opening(service, code)[0], range(16)))
    assert (statuses.count(200), statuses.count(410)) == (3, 13)


def test_what_is_not_json_is_refused(service: RunningService, api: Api) -> None:
    code = api.created()
    response = httpx.post(
        f"{service.origin}/links/shares/{code}/open", content=b"{", trust_env=False
    )
    assert response.status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/links/shares/x/open"),
        ("DELETE", "/links/shares/x"),
        ("GET", "/links/shares"),
        ("POST", "/"),
        ("GET", "//"),
        ("GET", "/index.html"),
        ("GET", "/v2/shares"),
        ("POST", "/s/x"),
    ],
)
def test_there_is_nothing_else(service: RunningService, method: str, path: str) -> None:
    assert httpx.request(method, service.origin + path, trust_env=False).status_code == 404
