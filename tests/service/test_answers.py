"""What every answer has in common: envelopes, content type, the base address; and that nothing else
is under /v1.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import credentials
from sealpipe_service.database import decisions
from sealpipe_service.responses import REFUSALS
from service.callers import NO_TLS, TOKEN, Api, body, by_hand, refusal, request_body, two_parts

CODES = {
    (400, 19), (400, 44), (400, 104), (403, 53), (403, 61), (403, 78), (403, 98), (403, 100),
    (404, 1), (404, 70),
    (409, 105), (409, 106), (429, 107), (500, 42), (500, 11),
}  # fmt: skip
"""The specification's table of errors, and 61 of the gaps."""


@pytest.mark.spec("version.codes", "errors.envelope")
def test_the_refusals_are_the_specifications_table() -> None:
    assert {(row.status, row.error_code) for row in REFUSALS.values()} == CODES
    assert len(REFUSALS) == len(CODES)


@pytest.mark.spec(
    "endpoints.content-type",
    "errors.envelope",
    "envelope.error",
    "errors.gateway",
    "gateway.own-body",
)
def test_every_answer_is_json_and_every_refusal_the_flat_envelope(
    service: RunningService, api: Api
) -> None:
    share, request = api.created(), api.asked()
    paths = [
        "/shares",
        f"/shares/{share}",
        "/requests",
        f"/requests/{request}",
        f"/requests/{request}/submissions",
        "/stats",
    ]
    fine = [api.http.get(path) for path in paths] + [api.create(), api.ask()]
    refused = [
        api.create(title=1),
        api.create(None),
        api.http.get("/shares/x"),
        api.http.delete("/requests"),
    ]
    gateway = [
        httpx.get(f"{service.base_url}/shares", headers=headers, trust_env=False, verify=NO_TLS)
        for headers in ({}, {"Authorization": "Bearer x"})
    ]
    for response in (*fine, *refused, *gateway):
        assert response.headers["content-type"] == "application/json"
    for response in refused:
        refusal(response)
        assert ("additional_data" in response.json()) is (response.json()["error_code"] == 19)
    assert [(each.status_code, list(each.json())) for each in gateway] == [
        (401, ["message"]),
        (403, ["Message"]),
    ]


@pytest.mark.spec("envelope.success", "rules.no-url")
def test_a_success_is_a_bare_object_without_wrapper_meta_or_request_id(api: Api) -> None:
    share, request = api.created(), api.asked()
    members = {
        "/shares": {"shares", "pagination"},
        f"/shares/{share}": {"short_code", "expired_at"},
        "/requests": {"requests", "pagination"},
        f"/requests/{request}": {"short_code", "expired_at", "public_key"},
        f"/requests/{request}/submissions": {
            "submissions",
            "count",
            "skipped_not_end_to_end_encrypted",
        },
        "/stats": {"shares", "daily_views"},
    }
    for path, expected in members.items():
        response = api.http.get(path)
        assert (response.status_code, response.json().keys()) == (200, expected)
        assert not [name for name in response.headers if "request-id" in name]
    assert api.create().json().keys() == {"short_code", "expired_at", "custody"}
    assert api.ask().json().keys() == {"short_code", "expired_at", "public_key"}


@pytest.mark.spec(
    "rules.no-content", "rules.metadata-only", "endpoints.none-for-keys", "gap.reading"
)
def test_no_route_of_the_api_gives_content_or_metadata_in_clear(api: Api) -> None:
    code = api.created(
        data="Y2FuYXJ5LWRhdGE=", title="canary-title", description="canary-description"
    )
    paths = ["/shares", "/shares?status=expired", f"/shares/{code}", "/requests", "/stats"]
    paths += [
        f"/shares/{code}/{more}"
        for more in ("content", "data", "open", "view", "access-log", "passcode")
    ]
    told = "".join(api.http.get(path).text for path in paths)
    told += api.http.post(f"/shares/{code}/open", json={"access_token": TOKEN}).text
    told += api.http.post(f"/shares/{code}", json={"access_token": TOKEN}).text
    for hidden in ("Y2FuYXJ5", "canary", TOKEN):
        assert hidden not in told
    assert code in told


ANYTHING = [
    "",
    "/",
    "/nothing",
    "/mcp/x",
    "/webhooks",
    "/keys",
    "/users",
    "/shares/x/y",
    "/shares/x/content",
]
ANYTHING += [
    "/requests/x/submissions/y",
    "/requests/x/submit",
    "/requests/x/open",
    "/stats/x",
    "/capabilities",
]
ANYTHING += [
    "/rehearsal",
    "/rehearsal/keys",
    "/shares//",
    "//shares",
    "/v1/shares",
    "/dev/shares",
    "/SHARES",
]


@pytest.mark.spec("endpoints.no-other", "version.no-header", "gap.newer-endpoints")
@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"]
)
def test_nothing_but_the_specifications_routes_answers(
    service: RunningService, api: Api, method: str
) -> None:
    # By hand: a HEAD has no body to parse.
    request = httpx.Client(trust_env=False, verify=NO_TLS, headers={"Authorization": api.bearer})
    with request as http:
        for path in ANYTHING:
            response = http.request(method, f"{service.base_url}{path}")
            assert (response.status_code, path) == (404, path)
    for path in ("/shares/", "/requests/", "/requests/x/submissions/", "/stats/"):
        if method != "DELETE":
            expected = (404, {"message": "Not Found"})
            assert (
                method == "HEAD"
                or by_hand(service, method, f"/v1{path}", {"Authorization": api.bearer}) == expected
            )


@pytest.mark.spec("version.base", "version.no-header")
def test_the_base_address_ends_in_v1_and_nothing_of_the_api_is_outside(
    service: RunningService, api: Api
) -> None:
    assert service.base_url.endswith("/v1")
    for path in (
        "/shares",
        "/requests",
        "/stats",
        "/v2/shares",
        "/V1/shares",
        "/prod/v1/shares",
        "/v1x/shares",
    ):
        assert by_hand(service, "GET", path, {"Authorization": api.bearer})[0] == 404
    for version in ("0", "2", "2099-01-01"):
        response = api.http.get("/shares", headers={"Api-Version": version, "X-Version": version})
        assert response.status_code == 200
    assert not [name for name in api.http.get("/shares").headers if "version" in name]


@pytest.mark.spec("share.show.no-query")
def test_a_query_changes_nothing_of_a_shares_metadata(api: Api) -> None:
    code = api.created()
    plain = api.http.get(f"/shares/{code}").content
    for query in ("?page=2", "?passcode=x", "?status=expired", f"?access_token={TOKEN}"):
        assert api.http.get(f"/shares/{code}{query}").content == plain


@pytest.mark.spec("share.delete.no-body", "request.delete.no-body")
@pytest.mark.parametrize("what", ["shares", "requests"])
def test_a_delete_needs_no_body_and_looks_at_none(api: Api, what: str) -> None:
    make = api.created if what == "shares" else api.asked
    one, two = make(), make()
    assert api.http.delete(f"/{what}/{one}").status_code == 200
    content = f'{{"short_codes": ["{two}"]}}'.encode()
    assert api.http.request("DELETE", f"/{what}/unknown", content=content).status_code == 404
    assert api.codes(what=what) == [two]
    assert api.http.request("DELETE", f"/{what}/{two}", content=b"{").status_code == 200


@pytest.mark.spec("share.delete.42", "errors.42")
def test_a_share_that_could_not_be_expired_is_500_with_42_and_is_as_it_was(
    service: RunningService, api: Api
) -> None:
    code = api.created()
    service.service.failing["share.expiring"] = 1
    assert refusal(api.http.delete("/shares/unknown")) == (404, 1), "it is found first"
    assert refusal(api.http.delete(f"/shares/{code}")) == (500, 42)
    assert (api.codes(), service.events()) == ([code], [])
    assert api.http.delete(f"/shares/{code}").status_code == 200


@pytest.mark.spec("credential.constant-time", "credential.hash", "token.trimmed-hash")
def test_secrets_are_compared_in_constant_time_and_as_hashes(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    class Watched:
        @staticmethod
        def compare_digest(one: str, two: str) -> bool:
            compared.append((len(one), len(two)))
            return hmac.compare_digest(one, two)

    monkeypatch.setattr(credentials, "hmac", Watched)
    monkeypatch.setattr(decisions, "hmac", Watched)
    unknown = f"Bearer svc_sk_live_{'x' * 16}.{two_parts(api.credential)[-43:]}"
    httpx.get(
        f"{service.base_url}/shares",
        headers={"Authorization": unknown},
        trust_env=False,
        verify=NO_TLS,
    )
    assert compared == [(64, 64)], "for a key id that nobody has, too"
    code = api.created(access_token=f" {TOKEN} ")
    assert (
        service.service.database.row(
            "SELECT 1 FROM shares WHERE access_token_sha256 LIKE '%ttt%'", {}
        )
        is None
    )
    httpx.post(
        f"{service.origin}/links/shares/{code}/open",
        json={"access_token": TOKEN},
        trust_env=False,
        verify=NO_TLS,
    ).raise_for_status()
    assert compared == [(64, 64)] * 3


@pytest.mark.spec("endpoints.bearer", "share.create.headers")
@pytest.mark.parametrize("leave_out", ["Authorization", "Idempotency-Key", None])
def test_a_create_takes_both_headers(
    service: RunningService, caller: Callable[..., Api], leave_out: str | None
) -> None:
    api = caller(service)
    headers = {
        "Authorization": api.bearer,
        "Idempotency-Key": "k",
        "Content-Type": "application/json",
    }
    headers.pop(leave_out or "", None)
    response = httpx.post(
        f"{service.base_url}/shares", json=body(), headers=headers, trust_env=False, verify=NO_TLS
    )
    assert (
        response.status_code == {"Authorization": 401, "Idempotency-Key": 400, None: 201}[leave_out]
    )


CONTENT_TYPES = {
    "application/json": True,
    "application/json; charset=utf-8": True,
    "Application/JSON ;charset=latin-1": True,
    "": False,
    "text/plain": False,
    "application/x-www-form-urlencoded": False,
    "application/json-patch+json": False,
    "application/problem+json": False,
    "text/plain; application/json": False,
    "application/json, text/plain": False,
}


@pytest.mark.spec("gap.content-type")
@pytest.mark.parametrize("header", [*CONTENT_TYPES, None])
def test_a_body_says_that_it_is_json(api: Api, header: str | None) -> None:
    del api.http.headers["Content-Type"]
    said = {} if header is None else {"Content-Type": header}
    message = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    for path, content in (
        ("/shares", json.dumps(body())),
        ("/requests", json.dumps(request_body())),
        ("/mcp", message),
    ):
        response = api.http.post(path, content=content, headers={**said, "Idempotency-Key": path})
        if header is not None and CONTENT_TYPES[header]:
            assert response.status_code < 300
        else:
            assert refusal(response) == (400, 19)
            assert response.json()["additional_data"] == {}
