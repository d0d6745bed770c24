"""What stands before every route: the credential, then the scope (specification:
Authentication).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import httpx
import pytest

from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.credentials import SCOPES
from sealpipe_service.gateway import ROUTES, Route
from service.callers import NO_TLS, Api, body, by_hand, refusal, two_parts

UNUSABLE: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "another scheme": lambda sent: f"Basic {sent}",
    "no scheme": lambda sent: sent,
    "another service's tag": lambda sent: f"Bearer {sent.replace('svc_', 'crs_')}",
    "one part": lambda sent: f"Bearer {sent.partition('.')[0]}",
    "a short key id": lambda sent: f"Bearer {sent.replace('_live_', '_live_x')}",
    "a character outside base64url": lambda sent: f"Bearer {sent[:-1]}+",
    "a cut auth secret": lambda sent: f"Bearer {sent[:-1]}",
    "padding": lambda sent: f"Bearer {sent}=",
    "an unknown key id": lambda sent: f"Bearer svc_sk_live_{'x' * 16}.{sent.partition('.')[2]}",
    "the wrong auth secret": lambda sent: f"Bearer {sent.partition('.')[0]}.{'x' * 43}",
    "three parts": lambda sent: f"Bearer {sent}.{'c' * 43}",
    "three parts, the third malformed": lambda sent: f"Bearer {sent}.c",
    "three parts, the third empty": lambda sent: f"Bearer {sent}.",
    "three parts of an unknown key": lambda _: (
        f"Bearer svc_sk_live_{'x' * 16}.{'a' * 43}.{'c' * 43}"
    ),
}


def get(service: RunningService, path: str, authorization: str | None) -> httpx.Response:
    headers = {} if authorization is None else {"Authorization": authorization}
    return httpx.get(service.base_url + path, headers=headers, trust_env=False, verify=NO_TLS)


@pytest.mark.spec("gateway.401", "errors.gateway", "gateway.own-body")
def test_no_authorization_header_is_401_with_message(service: RunningService) -> None:
    response = get(service, "/shares", None)
    assert (response.status_code, response.json()) == (401, {"message": "Unauthorized"})


@pytest.mark.spec("gateway.403", "gateway.identical", "errors.gateway", "credential.three-parts")
@pytest.mark.parametrize("how", UNUSABLE)
def test_a_credential_that_is_not_usable_gets_the_one_answer(
    service: RunningService, api: Api, how: str
) -> None:
    nobody = get(service, "/shares", "Bearer nonsense")
    response = get(service, "/shares", UNUSABLE[how](two_parts(api.credential)))
    assert response.status_code == 403
    assert list(response.json()) == ["Message"]
    assert "explicit deny" in response.json()["Message"]
    assert response.content == nobody.content


@pytest.mark.spec("credential.reverified", "gateway.403", "gateway.identical")
def test_a_revoked_key_gets_the_one_answer_from_its_next_call_on(
    service: RunningService, api: Api
) -> None:
    assert api.http.get("/shares").status_code == 200
    service.revoke_key(api.credential)
    assert api.http.get("/shares").content == get(service, "/shares", "Bearer nonsense").content


@pytest.mark.spec("plan.capability", "gateway.403", "gateway.identical", "limits.other-plans")
def test_an_account_without_api_access_gets_the_one_answer(
    service: RunningService, api: Api
) -> None:
    service.set_account(plan="none")
    assert api.http.get("/shares").content == get(service, "/shares", "Bearer nonsense").content
    service.set_account(plan="enterprise")
    assert api.http.get("/shares").status_code == 200


def test_two_authorization_headers_are_not_a_credential(service: RunningService, api: Api) -> None:
    sent = f"Bearer {two_parts(api.credential)}"
    response = httpx.get(
        f"{service.base_url}/shares",
        headers=[("Authorization", sent), ("Authorization", sent)],
        trust_env=False,
    )
    assert response.status_code == 403


@pytest.mark.spec("credential.three-parts", "credential.custody-nowhere")
def test_three_parts_are_recorded_as_a_compromise_and_kept_nowhere(
    service: RunningService, api: Api
) -> None:
    whole = api.credential.reveal()
    custody_part = whole.rpartition(".")[2]
    assert get(service, "/shares", f"Bearer {whole}").status_code == 403
    assert [(note.what, note.about, note.message) for note in service.notes()] == [
        ("key.compromised", api.key_id, "compromised: revoke")
    ]
    shown = control_client.call_control_api(service.origin, "GET", "/keys")["keys"]
    assert [key["compromised_at"] is not None for key in shown] == [True]
    assert all(custody_part.encode() not in bytes(seen) for seen in service.seen())
    assert custody_part not in httpx.get(f"{service.origin}/rehearsal/log", trust_env=False).text


def test_three_parts_of_an_unknown_key_are_not_recorded(service: RunningService) -> None:
    get(service, "/shares", f"Bearer svc_sk_live_{'x' * 16}.{'a' * 43}.{'c' * 43}")
    assert service.notes() == []


def test_a_compromised_key_works_in_two_parts_until_it_is_revoked(
    service: RunningService, api: Api
) -> None:
    get(service, "/shares", f"Bearer {api.credential.reveal()}")
    assert api.http.get("/shares").status_code == 200
    service.revoke_key(api.credential)
    assert api.http.get("/shares").status_code == 403


def test_rotating_works_with_both_keys_until_one_is_revoked(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    old, new = caller(service, name="old"), caller(service, name="new")
    code = old.created()
    assert old.codes() == new.codes() == [code]
    service.revoke_key(old.credential)
    assert (old.http.get("/shares").status_code, new.codes()) == (403, [code])


@pytest.mark.spec(
    "endpoints.scope-missing",
    "endpoints.scope-exact",
    "errors.78",
    "scopes.exact",
    "scopes.shares-read",
    "scopes.shares-write",
    "scopes.requests-read",
    "scopes.requests-write",
    "scopes.stats-read",
    "share.show.errors-78",
    "share.delete.78",
    "request.list.errors-78",
    "request.show.errors-78",
    "request.delete.78",
    "submissions.scope",
    "stats.scope",
)
@pytest.mark.parametrize(
    "route", ROUTES, ids=lambda route: f"{route.method} {'/'.join(route.path)}"
)
def test_every_route_wants_exactly_its_scope(
    service: RunningService, caller: Callable[..., Api], route: Route
) -> None:
    path = "/" + "/".join(segment.replace("{shortCode}", "none") for segment in route.path)
    others = [scope for scope in SCOPES if scope != route.scope]
    for scopes, allowed in (([route.scope], True), (others, False), ([], False)):
        api = caller(service, scopes=scopes)
        response = api.http.request(
            route.method, path, json=body(), headers={"Idempotency-Key": "k"}
        )
        if allowed:
            assert response.json().get("error_code") != 78
        else:
            assert refusal(response) == (403, 78)


def test_the_scope_is_checked_before_the_idempotency_header(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    assert refusal(caller(service, scopes=["shares:read"]).create(key=None)) == (403, 78)


@pytest.mark.spec("endpoints.no-other", "gap.newer-endpoints")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/"),
        ("GET", "/nothing"),
        ("GET", "/shares/"),
        ("POST", "/shares/"),
        ("PUT", "/shares"),
        ("PATCH", "/shares/x"),
        ("POST", "/shares/x"),
        ("GET", "/shares/x/content"),
        ("GET", "/shares/x/access-log"),
        ("GET", "/capabilities"),
        ("POST", "/keys"),
        ("GET", "/../rehearsal/keys"),
        ("OPTIONS", "/shares"),
    ],
)
def test_no_other_route_exists(service: RunningService, api: Api, method: str, path: str) -> None:
    answered = by_hand(service, method, f"/v1{path}", {"Authorization": api.bearer})
    assert answered == (404, {"message": "Not Found"})


def test_a_stranger_does_not_learn_which_routes_exist(service: RunningService) -> None:
    assert get(service, "/nothing", None).status_code == 401
    assert get(service, "/nothing", "Bearer nonsense").status_code == 403


def test_a_body_beyond_the_limit_is_413(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.service, "max_body", 1000)
    assert api.post(b"x" * 1001).status_code == 413
    assert api.post(b"x" * 1000).status_code == 400


@pytest.mark.parametrize("levels", [499, 500, 501, 900, *range(960, 1000), 1001, 100_000])
def test_a_body_may_be_nested_but_not_without_an_end(api: Api, levels: int) -> None:
    nested = b"[" * (levels - 1) + b"]" * (levels - 1)
    refused = api.post(b'{"payload": ' + nested + b"}")
    assert refused.status_code == 400
    # An object that says nothing of use is told which member is wrong; what is none, nothing.
    assert (refused.json()["additional_data"] == {}) is (levels > 500)


@pytest.mark.spec("credential.hash", "credential.never-stored")
def test_of_the_auth_secret_the_service_keeps_the_hash(service: RunningService, api: Api) -> None:
    row = service.service.database.row("SELECT * FROM keys", {})
    assert row is not None
    auth_secret = two_parts(api.credential).partition(".")[2]
    assert row["auth_sha256"] == hashlib.sha256(auth_secret.encode()).hexdigest()
    assert auth_secret not in str(tuple(row))


def test_the_key_list_tells_when_a_key_was_last_used(service: RunningService, api: Api) -> None:
    def last_used() -> object:
        return control_client.call_control_api(service.origin, "GET", "/keys")["keys"][0][
            "last_used_at"
        ]

    assert last_used() is None
    api.http.get("/shares")
    assert last_used() is not None
