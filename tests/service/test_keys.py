"""API keys as the signed-in app has them: form, scopes, custody, compromise, last used
(specification: Credential).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from sealpipe.minting import mint
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.control_client import RehearsalError
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from sealpipe_service.credentials import SCOPES
from service.callers import NO_TLS, TOKEN, WRAP, Api, by_hand, refusal, two_parts

YEAR = 365 * 24 * 3600


def form(service: RunningService, **changes: Any) -> dict[str, Any]:
    """Send the key-creation form as it stands; `...` leaves a member out."""
    minted = mint()
    members = {"key_id": minted.key_id, "auth_sha256": minted.auth_sha256, "name": "n", **changes}
    filled = {name: value for name, value in members.items() if value is not ...}
    shown: dict[str, Any] = control_client.call_control_api(service.origin, "POST", "/keys", filled)
    return shown


def shown(service: RunningService, api: Api) -> dict[str, Any]:
    (key,) = [
        key for key in control_client.list_keys(service.origin) if key["key_id"] == api.key_id
    ]
    return key


@pytest.mark.spec("credential.form", "credential.app-only", "custody.default", "gap.service-tag")
def test_the_form_starts_with_shares_write_and_custody_self(service: RunningService) -> None:
    key = form(service)
    assert (key["scopes"], key["custody_requested"]) == (["shares:write"], "self")


@pytest.mark.spec("credential.form", "key.name", "limits.key-name", "gap.key-name")
@pytest.mark.parametrize(
    ("name", "taken"),
    [
        (..., False),
        ("", False),
        (" \t\n", False),
        ("x", True),
        (" x ", True),
        ("x" * 256, True),
        (f"  {'x' * 256}\n", True),
        ("x" * 257, False),
        (f" {'x' * 257}", False),
    ],
)
def test_a_name_is_needed_and_has_up_to_256_characters(
    service: RunningService,
    name: Any,
    taken: bool,  # noqa: FBT001
) -> None:
    if taken:
        assert form(service, name=name)["name"] == name.strip()
        return
    with pytest.raises(RehearsalError, match="name"):
        form(service, name=name)
    assert control_client.list_keys(service.origin) == []


@pytest.mark.spec("key.scopes", "scopes.exact")
def test_without_any_scope_every_endpoint_refuses_the_key(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    api = caller(service, scopes=[])
    assert shown(service, api)["scopes"] == []
    for method, path in (
        ("GET", "/shares"),
        ("GET", "/requests"),
        ("GET", "/stats"),
        ("DELETE", "/requests/x"),
    ):
        assert refusal(api.http.request(method, path)) == (403, 78)
    assert refusal(api.create()) == (403, 78)


@pytest.mark.spec("scopes.webhooks-manage")
def test_webhooks_manage_grants_and_denies_nothing(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    api = caller(service, scopes=["webhooks:manage"])
    assert {refusal(api.http.get(path)) for path in ("/shares", "/requests", "/stats")} == {
        (403, 78)
    }
    both = caller(service, scopes=["webhooks:manage", "shares:read"])
    assert both.http.get("/shares").status_code == 200


@pytest.mark.spec("scopes.exact", "endpoints.scope-exact")
@pytest.mark.parametrize("near", [["shares:write"], ["requests:read"], ["stats:read"]])
def test_no_scope_holds_another(
    service: RunningService, caller: Callable[..., Api], near: list[str]
) -> None:
    assert refusal(caller(service, scopes=near).http.get("/shares")) == (403, 78)


@pytest.mark.spec("scopes.exact", "key.scopes")
@pytest.mark.parametrize("scope", ["shares:*", "shares", "*", "Shares:read", "shares:read "])
def test_there_is_no_wildcard_to_choose(service: RunningService, scope: str) -> None:
    with pytest.raises(RehearsalError, match="scopes"):
        form(service, scopes=[scope])


@pytest.mark.spec(
    "key.fixed", "credential.api-cannot", "endpoints.none-for-keys", "rules.keys-not-in-api"
)
@pytest.mark.parametrize("path", ["", "/rotate", "/revoke", "/rename", "/scopes"])
def test_the_api_has_no_route_for_keys(service: RunningService, api: Api, path: str) -> None:
    before = shown(service, api)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for start_of in ("/keys", f"/keys/{api.key_id}", "/api-keys"):
            assert by_hand(
                service, method, f"/v1{start_of}{path}", {"Authorization": api.bearer}
            ) == (
                404,
                {"message": "Not Found"},
            )
    after = shown(service, api)
    assert {**after, "last_used_at": None} == {**before, "last_used_at": None}


@pytest.mark.spec("key.fixed")
@pytest.mark.parametrize("path", ["", "/name", "/scopes"])
def test_nor_has_the_app_one_to_change_name_or_scopes(
    service: RunningService, api: Api, path: str
) -> None:
    with pytest.raises(RehearsalError) as none:
        control_client.call_control_api(
            service.origin, "POST", f"/keys/{api.key_id}{path}", {"name": "x", "scopes": []}
        )
    assert none.value.status == 404


@pytest.mark.spec("key.no-expiry")
def test_a_key_does_not_expire(service: RunningService, api: Api) -> None:
    service.advance(30 * YEAR)
    assert api.http.get("/shares").status_code == 200
    assert not [name for name in shown(service, api) if "expire" in name or "ttl" in name]


@pytest.mark.spec("key.last-used")
def test_a_key_tells_when_it_was_last_used(service: RunningService, api: Api) -> None:
    assert shown(service, api)["last_used_at"] is None
    api.http.get("/shares")
    first = shown(service, api)["last_used_at"]
    service.advance(100)
    api.http.get("/nothing")
    assert 99 < shown(service, api)["last_used_at"] - first < 110


@pytest.mark.spec("key.last-used", "gateway.403")
def test_a_call_that_was_turned_away_is_no_use(service: RunningService, api: Api) -> None:
    wrong = f"Bearer {two_parts(api.credential)[:-43]}{'x' * 43}"
    httpx.get(
        f"{service.base_url}/shares",
        headers={"Authorization": wrong},
        trust_env=False,
        verify=NO_TLS,
    )
    assert shown(service, api)["last_used_at"] is None


@pytest.mark.spec("key.revoked")
def test_a_revoked_key_stays_listed_as_revoked(service: RunningService, api: Api) -> None:
    assert shown(service, api)["revoked_at"] is None
    service.revoke_key(api.credential)
    assert shown(service, api)["revoked_at"] is not None


@pytest.mark.spec("credential.rotation")
def test_while_rotating_both_keys_work(service: RunningService, caller: Callable[..., Api]) -> None:
    old, new = caller(service, name="old"), caller(service, name="new")
    code = old.created()
    assert old.codes() == new.codes() == [code]
    service.revoke_key(old.credential)
    assert (old.http.get("/shares").status_code, new.codes()) == (403, [code])


@pytest.mark.spec(
    "credential.parts",
    "credential.format",
    "credential.sizes",
    "limits.credential",
    "credential.header",
)
def test_a_credential_has_its_sizes(service: RunningService) -> None:
    whole = service.create_key().reveal()
    assert re.fullmatch(r"svc_sk_live_[\w-]{16}\.[\w-]{43}\.[\w-]{43}", whole, re.ASCII)
    assert len(whole) == 116
    header = f"Bearer {whole.rpartition('.')[0]}"
    # 79 with `Bearer `: the specification counts the 72 characters that follow it.
    assert len(header.removeprefix("Bearer ")) == 72
    response = httpx.get(
        f"{service.base_url}/shares",
        headers={"Authorization": header},
        trust_env=False,
        verify=NO_TLS,
    )
    assert response.status_code == 200


LEVELS: list[tuple[str, bool, bool, str]] = [
    # asked for, public key registered, approved by a device, effective
    ("none", False, False, "none"),
    ("none", True, False, "none"),
    ("self", False, False, "none"),
    ("self", True, False, "self"),
    ("account", False, False, "none"),
    ("account", True, False, "self"),
    ("account", True, True, "account"),
]


@pytest.mark.spec(
    "key.custody",
    "custody.0",
    "custody.1",
    "custody.2",
    "custody.starts-at-0",
    "custody.by-grant",
    "rules.19-wrap",
)
@pytest.mark.parametrize(("asked", "registered", "granted", "effective"), LEVELS)
def test_the_effective_level_rises_by_registering_and_by_grant_alone(
    service: RunningService,
    caller: Callable[..., Api],
    asked: str,
    registered: bool,  # noqa: FBT001  # a column of the table
    granted: bool,  # noqa: FBT001  # a column of the table
    effective: str,
) -> None:
    api = caller(service, custody=asked, register=False)
    assert shown(service, api)["custody_effective"] == "none"
    if registered:
        members = {"custody_public_key": mint().custody_public_key}
        control_client.call_control_api(
            service.origin, "POST", f"/keys/{api.key_id}/custody", members
        )
    if granted:
        service.grant_custody(api.credential)
    key = shown(service, api)
    assert (key["custody_requested"], key["custody_effective"]) == (asked, effective)
    response = api.create(item_key_wrap=WRAP)
    if effective == "none":
        assert refusal(response) == (400, 19)
    else:
        assert (response.status_code, response.json()["custody"]) == (201, "stored")


@pytest.mark.spec("custody.by-grant")
@pytest.mark.parametrize(
    ("asked", "register"), [("none", True), ("self", True), ("account", False)]
)
def test_what_did_not_ask_or_did_not_register_is_not_granted(
    service: RunningService,
    caller: Callable[..., Api],
    asked: str,
    register: bool,  # noqa: FBT001  # a column of the table
) -> None:
    api = caller(service, custody=asked, register=register)
    with pytest.raises(RehearsalError) as refused:
        service.grant_custody(api.credential)
    assert (refused.value.status, shown(service, api)["granted_at"]) == (409, None)


@pytest.mark.spec("custody.no-key-approves")
def test_no_api_key_can_approve(service: RunningService, caller: Callable[..., Api]) -> None:
    api = caller(service, custody="account")
    for path in (f"/keys/{api.key_id}/grant", "/grant", "/custody"):
        assert api.http.post(path).status_code == 404
    # Nor does its credential open the door that can: that one wants no credential, and takes none
    # for a device.
    assert shown(service, api)["custody_effective"] == "self"


@pytest.mark.spec("credential.revoke-frees")
def test_revoking_removes_the_account_custody(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    api = caller(service, custody="account")
    service.grant_custody(api.credential)
    assert shown(service, api)["granted_at"] is not None
    service.revoke_key(api.credential)
    key = shown(service, api)
    assert (key["granted_at"], key["custody_effective"]) == (None, "self")


def send(service: RunningService, credential: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {credential}"}
    return httpx.get(f"{service.base_url}/shares", headers=headers, trust_env=False, verify=NO_TLS)


@pytest.mark.spec(
    "credential.three-parts",
    "credential.only-two",
    "credential.custody-nowhere",
    "gateway.403",
    "gap.compromise",
)
@pytest.mark.parametrize("how", ["whole", "another custody secret", "revoked"])
def test_three_parts_are_refused_and_recorded_as_a_compromise(
    service: RunningService, api: Api, how: str
) -> None:
    whole = api.credential.reveal()
    custody = whole.rpartition(".")[2]
    if how == "revoked":
        service.revoke_key(api.credential)
    response = send(
        service, whole.replace(custody, "c" * 43) if how == "another custody secret" else whole
    )
    assert (response.status_code, list(response.json())) == (403, ["Message"])
    assert shown(service, api)["compromised_at"] is not None
    assert [note.what for note in service.notes()] == ["key.compromised"]
    assert all(custody.encode() not in bytes(seen) for seen in service.seen())


NO_COMPROMISE: dict[str, Callable[[str, str, str], str]] = {
    "the auth secret is wrong": lambda key_id, _, custody: f"{key_id}.{'x' * 43}.{custody}",
    "the auth secret is cut": lambda key_id, auth, custody: f"{key_id}.{auth[:-1]}.{custody}",
    "the key id is unknown": lambda key_id, auth, custody: (
        f"{key_id[:-16]}{'x' * 16}.{auth}.{custody}"
    ),
    "the third part is empty": lambda key_id, auth, _: f"{key_id}.{auth}.",
    "the third part is cut": lambda key_id, auth, custody: f"{key_id}.{auth}.{custody[:-1]}",
    "the third part is longer": lambda key_id, auth, custody: f"{key_id}.{auth}.{custody}A",
    "the third part has a line end": lambda key_id, auth, custody: (
        f"{key_id}.{auth}.{custody[:-1]}%0A"
    ),
    "there is a fourth part": lambda key_id, auth, custody: f"{key_id}.{auth}.{custody}.{custody}",
}


@pytest.mark.spec("gap.compromise", "gateway.identical")
@pytest.mark.parametrize("how", NO_COMPROMISE)
def test_anything_else_with_a_third_part_is_refused_and_records_nothing(
    service: RunningService, api: Api, how: str
) -> None:
    response = send(service, NO_COMPROMISE[how](*api.credential.reveal().split(".")))
    assert response.content == send(service, "nonsense").content
    assert (shown(service, api)["compromised_at"], service.notes()) == (None, [])


@pytest.mark.spec("gap.compromise")
def test_a_compromise_is_recorded_once_and_the_key_works_until_its_owner_revokes_it(
    service: RunningService, api: Api
) -> None:
    send(service, api.credential.reveal())
    first = shown(service, api)["compromised_at"]
    service.advance(60)
    send(service, api.credential.reveal())
    assert shown(service, api)["compromised_at"] == first
    assert [note.what for note in service.notes()] == ["key.compromised"]
    assert api.http.get("/shares").status_code == 200
    service.revoke_key(api.credential)
    assert api.http.get("/shares").status_code == 403


@pytest.mark.spec("gap.compromise")
@pytest.mark.parametrize("revoked", [False, True])
def test_what_was_compromised_is_never_registered_again(
    service: RunningService,
    revoked: bool,  # noqa: FBT001
) -> None:
    old, new = mint(), mint()
    about = {"auth_sha256": old.auth_sha256, "custody_public_key": old.custody_public_key}
    form(service, key_id=old.key_id, **about)
    send(service, old.credential.reveal())
    if revoked:
        service.revoke_key(old.credential)
    for again in (
        about,
        {**about, "custody_public_key": ...},
        {**about, "auth_sha256": new.auth_sha256},
    ):
        with pytest.raises(RehearsalError, match="compromised"):
            form(service, **again)
    form(service, key_id=new.key_id, auth_sha256=new.auth_sha256)
    for key_id, public_key in (
        (new.key_id, old.custody_public_key),
        (old.key_id, new.custody_public_key),
    ):
        with pytest.raises(RehearsalError, match="compromised"):
            control_client.call_control_api(
                service.origin,
                "POST",
                f"/keys/{key_id}/custody",
                {"custody_public_key": public_key},
            )


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.spec(
    "credential.hash",
    "credential.never-stored",
    "rules.stores-hash",
    "share.access_token",
    "token.trimmed-hash",
)
def test_of_every_secret_that_arrives_the_files_hold_only_hashes(
    tmp_path: Path, caller: Callable[..., Api]
) -> None:
    passcode, verifier = "canary-passcode-of-a-request", "canaryVerifier" + "v" * 29
    with start(state=tmp_path / "state.db") as running:
        api = caller(running, name="canary-name")
        share = api.created(passcode_verifier=verifier, title="canary-title")
        request = api.asked(passcode=passcode)
        control_client.send_request(
            running.origin, "POST", f"/links/shares/{share}/open", {"access_token": TOKEN}
        )
        link = f"{running.link_base_url}/r/{request}"
        running.submitter().submit(link, {"Password": "canary-submitted"}, passcode=passcode)
        three = {"Authorization": f"Bearer {api.credential.reveal()}"}
        httpx.get(f"{running.base_url}/shares", headers=three, trust_env=False, verify=NO_TLS)
        written = stored(tmp_path)
    written += stored(tmp_path)
    _, auth_secret, custody_secret = api.credential.reveal().split(".")
    present: Iterable[str] = ("canary-name", "canary-title", request)
    assert all(each.encode() in written for each in present), "or this test reads the wrong files"
    for secret in (auth_secret, custody_secret, TOKEN, verifier, passcode, "canary-submitted"):
        assert secret.encode() not in written


@pytest.mark.spec("credential.no-session")
def test_a_cookie_or_another_header_is_no_credential(service: RunningService, api: Api) -> None:
    sent = two_parts(api.credential)
    for headers in (
        {"Cookie": f"session={sent}"},
        {"X-Api-Key": sent},
        {"Proxy-Authorization": f"Bearer {sent}"},
    ):
        response = httpx.get(
            f"{service.base_url}/shares", headers=headers, trust_env=False, verify=NO_TLS
        )
        assert (response.status_code, response.json()) == (401, {"message": "Unauthorized"})
    assert "set-cookie" not in api.http.get("/shares").headers
    queried = httpx.get(f"{service.base_url}/shares?api_key={sent}", trust_env=False, verify=NO_TLS)
    assert queried.status_code == 401


def test_the_clock_of_a_key_is_the_services(service: RunningService, api: Api) -> None:
    created = datetime.fromtimestamp(shown(service, api)["created_at"], UTC)
    assert abs((created - service.service.clock.now()).total_seconds()) < 10


@pytest.mark.spec("key.scopes", "credential.form")
def test_every_scope_of_the_specification_can_be_chosen_and_no_other(
    service: RunningService,
) -> None:
    assert SCOPES == (
        "shares:read",
        "shares:write",
        "requests:read",
        "requests:write",
        "stats:read",
        "webhooks:manage",
    )
    assert form(service, scopes=list(SCOPES))["scopes"] == sorted(SCOPES)
