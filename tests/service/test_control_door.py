"""The control API: registering keys, switches, clock, log, reset; closed to browsers."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from sealpipe.minting import mint
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.log import Log, LoggedRequest
from sealpipe_rehearsal.running_service import RunningService
from service.callers import NO_TLS, Api, rows
from support.ports import silent_port

DOOR = ["/rehearsal", "/rehearsal/keys", "/rehearsal/log"]


def key_members(**changes: Any) -> dict[str, Any]:
    minted = mint()
    members = {
        "key_id": minted.key_id,
        "auth_sha256": minted.auth_sha256,
        "name": "n",
        "scopes": ["shares:read"],
        "custody": "self",
        "custody_public_key": minted.custody_public_key,
        **changes,
    }
    return {name: value for name, value in members.items() if value is not ...}


def post(service: RunningService, path: str, members: Any) -> httpx.Response:
    content = json.dumps(members).encode()
    return httpx.post(
        f"{service.origin}/rehearsal{path}", content=content, trust_env=False, verify=NO_TLS
    )


def test_it_says_what_it_is(service: RunningService) -> None:
    told = control_client.call_control_api(service.base_url, "GET", "")
    assert (told["service"], told["service_tag"]) == ("sealpipe rehearsal", "svc")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", ""])
@pytest.mark.parametrize("path", DOOR)
def test_it_refuses_whatever_a_web_page_sends(
    service: RunningService, path: str, origin: str
) -> None:
    response = httpx.get(
        service.origin + path, headers={"Origin": origin}, trust_env=False, verify=NO_TLS
    )
    assert response.status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""]
)
@pytest.mark.parametrize("path", [*DOOR, "/links/shares/x", "/s/x"])
def test_it_refuses_a_foreign_host_name(service: RunningService, path: str, host: str) -> None:
    response = httpx.get(
        service.origin + path, headers={"Host": host}, trust_env=False, verify=NO_TLS
    )
    assert response.status_code == 403


def test_it_refuses_even_a_page_of_the_service_itself(service: RunningService) -> None:
    response = httpx.get(
        f"{service.origin}/rehearsal",
        headers={"Origin": service.origin},
        trust_env=False,
        verify=NO_TLS,
    )
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
def test_it_answers_under_every_name_of_loopback(service: RunningService, host: str) -> None:
    url = f"{service.origin}/rehearsal"
    assert httpx.get(url, headers={"Host": host}, trust_env=False, verify=NO_TLS).status_code == 200


def test_the_recipients_route_answers_its_own_page_and_no_other(
    service: RunningService, api: Api
) -> None:
    url = f"{service.origin}/links/shares/{api.created()}"
    statuses = [
        httpx.get(url, headers={"Origin": origin}, trust_env=False, verify=NO_TLS).status_code
        for origin in (service.origin, "https://evil.example", "null")
    ]
    assert statuses == [200, 403, 403]


REJECTED: dict[str, list[Any]] = {
    "key_id": [..., None, "", "x", "x" * 17, "+" * 16, 1],
    "auth_sha256": [..., "", "a" * 63, "A" * 64, "z" * 64, 1],
    "name": [..., None, "", "n" * 257, 1, "\ud800"],
    "scopes": ["shares:read", ["shares:*"], ["shares:read "], [1], [["x"]]],
    "custody": ["Self", "", 1, ["self"]],
    "custody_public_key": [
        "",
        1,
        "x" * 86,
        "A" * 87,
        base64.urlsafe_b64encode(b"\x04" + bytes(64)).decode().rstrip("="),
        base64.urlsafe_b64encode(b"\x02" + bytes(32)).decode().rstrip("="),
    ],
    "account": ["", 1],
    "auth_secret": ["a" * 43],
}


@pytest.mark.parametrize(("name", "value"), rows(REJECTED), ids=lambda value: ascii(value)[:30])
def test_a_key_that_breaks_a_rule_is_not_registered(
    service: RunningService, name: str, value: Any
) -> None:
    response = post(service, "/keys", key_members(**{name: value}))
    assert response.status_code == 400
    assert list(response.json()["members"]) == [name]
    assert control_client.call_control_api(service.origin, "GET", "/keys") == {"keys": []}


def test_a_name_may_have_256_characters(service: RunningService) -> None:
    assert post(service, "/keys", key_members(name="ü" * 256)).status_code == 201


def test_a_key_id_is_registered_once(service: RunningService) -> None:
    members = key_members()
    assert [post(service, "/keys", members).status_code for _ in range(2)] == [201, 409]


def test_registering_the_custody_key_raises_the_effective_level_to_self_at_most(
    service: RunningService,
) -> None:
    for asked, effective in (("none", "none"), ("self", "self"), ("account", "self")):
        members = key_members(custody=asked)
        public_key = members.pop("custody_public_key")
        created = post(service, "/keys", members).json()
        assert (created["custody_requested"], created["custody_effective"]) == (asked, "none")
        path = f"/keys/{members['key_id']}/custody"
        raised = post(service, path, {"custody_public_key": public_key}).json()
        assert raised["custody_effective"] == effective


@pytest.mark.parametrize("path", ["/keys/unknown/revoke", "/nothing", "/keys/x/y/z", "/accounts"])
def test_what_is_not_there_is_404(service: RunningService, path: str) -> None:
    assert post(service, path, {}).status_code == 404


def test_a_revoked_key_stays_listed_with_the_time_of_its_first_revocation(
    service: RunningService, api: Api
) -> None:
    service.revoke_key(api.credential)
    (first,) = control_client.call_control_api(service.origin, "GET", "/keys")["keys"]
    service.advance(60)
    service.revoke_key(api.credential)
    (second,) = control_client.call_control_api(service.origin, "GET", "/keys")["keys"]
    assert first["revoked_at"] == second["revoked_at"] is not None


def test_account_switches_change_one_by_one(service: RunningService) -> None:
    control_client.set_account(service.origin, "a/b c", plan="enterprise")
    control_client.set_account(service.origin, "a/b c", webhooks=11)
    assert control_client.set_account(service.origin, "a/b c", view_protection=False) == {
        "name": "a/b c",
        "plan": "enterprise",
        "numbers": {"webhooks": 11},
        "view_protection": False,
        "zero_knowledge_enrolled": True,
        "zero_knowledge_feature": True,
        "api_access": True,
        "limits": {
            "api_access": True,
            "requests_per_minute": 600,
            "api_keys": 25,
            "webhooks": 11,
            "shares": None,
            "view_protection": False,
            "access_log_days": 365,
        },
    }


@pytest.mark.parametrize("members", [{"plan": "free"}, {"view_protection": 1}, {"unknown": True}])
def test_a_switch_that_is_none_is_refused(service: RunningService, members: dict[str, Any]) -> None:
    with pytest.raises(control_client.RehearsalError) as refused:
        control_client.set_account(service.origin, **members)
    assert refused.value.status == 400
    assert next(iter(members)) in str(refused.value)


def test_time_goes_forward_only(service: RunningService) -> None:
    before = service.service.clock.now()
    control_client.advance_clock(service.origin, 90.5)
    assert 90 < (service.service.clock.now() - before).total_seconds() < 100
    for seconds in (-1, 1e10, "1", True, None):
        with pytest.raises(control_client.RehearsalError):
            control_client.call_control_api(
                service.origin, "POST", "/clock", {"advance_seconds": seconds}
            )


def test_the_log_shows_every_request_as_it_came_and_leaves_the_door_out(
    service: RunningService, api: Api
) -> None:
    content = b'{"not": "a share", "bytes": "\xff"}'
    api.post(content, "k")
    api.http.get("/shares?page=2&x=%C3%A9")
    requests = control_client.call_control_api(service.origin, "GET", "/log")["requests"]
    assert [(request["method"], request["target"]) for request in requests] == [
        ("POST", "/v1/shares"),
        ("GET", "/v1/shares?page=2&x=%C3%A9"),
    ]
    assert base64.b64decode(requests[0]["body_base64"]) == content
    assert ["idempotency-key", "k"] in requests[0]["headers"]
    seen = service.seen()[0]
    assert (seen.method, seen.body) == ("POST", content)
    assert content in bytes(seen)


def test_the_log_is_bounded_by_number_and_by_bytes(service: RunningService) -> None:
    def seen(size: int) -> LoggedRequest:
        return LoggedRequest(service.service.clock.now(), "GET", "/", (), bytes(size))

    log = Log(max_entries=3, max_bytes=100)
    for size in (1, 2, 3, 4):
        log.add_request(seen(size))
    assert [len(entry.body) for entry in log.requests()] == [2, 3, 4]
    log.add_request(seen(98))
    assert [len(entry.body) for entry in log.requests()] == [98]
    log.add_request(seen(1000))
    assert [len(entry.body) for entry in log.requests()] == [1000]


def test_reset_forgets_everything(
    service: RunningService, api: Api, caller: Callable[..., Api]
) -> None:
    api.create("k")
    service.advance(1000)
    control_client.reset(service.base_url)
    assert [*service.seen(), *service.events(), *service.notes()] == []
    assert (service.service.clock.now() - datetime.now(UTC)).total_seconds() < 100
    assert api.http.get("/shares").status_code == 403
    assert caller(service).codes() == []


@pytest.mark.parametrize(
    "base", ["https://127.0.0.1:1", "http://example.org/v1", "127.0.0.1:80", ""]
)
def test_our_side_of_the_door_goes_to_this_machine_only(base: str) -> None:
    with pytest.raises(control_client.RehearsalError):
        control_client.send_request(base, "GET", "/rehearsal")


def test_a_missing_service_is_a_clear_error() -> None:
    with pytest.raises(control_client.RehearsalError, match="no rehearsal responds"):
        control_client.register_key(f"http://127.0.0.1:{silent_port()}/v1", name="n")
