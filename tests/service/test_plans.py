"""What plans allow: access, allowances, view protection; when a change is seen; team keys
(specification: Limits).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.control_client import RehearsalError
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import format_rfc3339
from service.callers import NO_TLS, Api, refusal

ORG = "org:team"


def denied(service: RunningService, response: httpx.Response) -> bool:
    """Whether it is the gateway's one answer for what is not usable."""
    nobody = httpx.get(
        f"{service.base_url}/shares",
        headers={"Authorization": "Bearer x"},
        trust_env=False,
        verify=NO_TLS,
    )
    assert (nobody.status_code, list(nobody.json())) == (403, ["Message"])
    return response.content == nobody.content


def mint(service: RunningService, **key: Any) -> int | None:
    """Mint a key; the error_code where that was refused."""
    try:
        service.create_key(**key)
    except RehearsalError as error:
        return error.error_code if error.status == 403 else error.status
    return None


LIMITS = [
    ("business", {"api_access": True, "requests_per_minute": 100, "api_keys": 5, "webhooks": 3}),
    (
        "enterprise",
        {"api_access": True, "requests_per_minute": 600, "api_keys": 25, "webhooks": 10},
    ),
    ("none", {"api_access": False, "requests_per_minute": None, "api_keys": 0, "webhooks": 0}),
]


@pytest.mark.spec("limits.business", "limits.enterprise", "limits.other-plans", "events.webhooks")
@pytest.mark.parametrize(("plan", "row"), LIMITS)
def test_a_plan_has_its_row_of_limits(
    service: RunningService, plan: str, row: dict[str, Any]
) -> None:
    limits = control_client.set_account(service.origin, plan=plan)["limits"]
    assert {name: limits[name] for name in row} == row


@pytest.mark.spec("limits.business", "limits.enterprise", "plan.allowance", "errors.100")
@pytest.mark.parametrize(("plan", "keys"), [("business", 5), ("enterprise", 25)])
def test_a_plan_allows_so_many_keys(service: RunningService, plan: str, keys: int) -> None:
    service.set_account(plan=plan)
    assert [mint(service) for _ in range(keys + 2)] == [None] * keys + [100, 100]
    assert mint(service, account="another") is None


@pytest.mark.spec(
    "plan.mint",
    "errors.98",
    "limits.other-plans",
    "plan.capability",
    "plan.capability-again",
    "limits.rate-unset",
)
@pytest.mark.parametrize("account", [{"plan": "none"}, {"requests_per_minute": "unset"}])
def test_without_api_access_no_key_is_minted(
    service: RunningService, account: dict[str, Any]
) -> None:
    service.set_account(**account)
    assert mint(service) == 98
    assert control_client.list_keys(service.origin) == []


@pytest.mark.spec("plan.mint", "errors.98")
def test_the_app_mints_by_the_plan_as_it_is_now(service: RunningService, api: Api) -> None:
    assert api.http.get("/shares").status_code == 200
    service.set_account(plan="none", at_once=False)
    assert (api.http.get("/shares").status_code, mint(service)) == (200, 98)


def test_the_default_account_has_no_allowance_until_its_plan_is_chosen(
    service: RunningService,
) -> None:
    assert [mint(service) for _ in range(8)] == [None] * 8
    assert [mint(service, account="named") for _ in range(6)] == [None] * 5 + [100]
    assert control_client.set_account(service.origin)["limits"]["api_keys"] is None
    assert control_client.set_account(service.origin, plan="business")["limits"]["api_keys"] == 5
    assert mint(service) == 100


@pytest.mark.spec("credential.revoke-frees", "plan.allowance")
def test_revoking_frees_a_slot_at_once(service: RunningService) -> None:
    service.set_account(plan="business")
    credentials = [service.create_key() for _ in range(5)]
    assert mint(service) == 100
    service.revoke_key(credentials[2])
    service.revoke_key(credentials[2])
    assert [mint(service), mint(service)] == [None, 100]


@pytest.mark.spec("limits.raised")
def test_the_operator_can_raise_the_key_allowance(service: RunningService) -> None:
    service.set_account(api_keys=7)
    assert [mint(service) for _ in range(8)] == [None] * 7 + [100]
    service.set_account(api_keys=8)
    assert mint(service) is None
    service.set_account(api_keys="plan")
    assert mint(service) == 100


@pytest.mark.spec("credential.entitlement", "limits.plan-cache", "plan.capability")
@pytest.mark.parametrize(("before", "after"), [("business", "none"), ("none", "business")])
def test_a_change_of_plan_is_seen_within_30_seconds_both_ways(
    service: RunningService, caller: Callable[..., Api], before: str, after: str
) -> None:
    api = caller(service)
    service.set_account(plan=before)
    assert denied(service, api.http.get("/shares")) is (before == "none")
    service.set_account(plan=after, at_once=False)
    service.advance(25)
    assert denied(service, api.http.get("/shares")) is (before == "none"), (
        "the entitlement is cached"
    )
    service.advance(5)
    assert denied(service, api.http.get("/shares")) is (after == "none")


@pytest.mark.spec("limits.plan-cache", "errors.53")
def test_view_protection_is_part_of_the_cached_entitlement(
    service: RunningService, api: Api
) -> None:
    assert api.create(passcode_verifier="v" * 43).status_code == 201
    service.set_account(view_protection=False, at_once=False)
    assert api.create(passcode_verifier="v" * 43).status_code == 201
    service.advance(30)
    assert refusal(api.create(passcode_verifier="v" * 43)) == (403, 53)


@pytest.mark.spec("credential.reverified")
def test_the_key_itself_is_never_cached(service: RunningService, api: Api) -> None:
    assert api.http.get("/shares").status_code == 200
    service.revoke_key(api.credential)
    assert denied(service, api.http.get("/shares"))


@pytest.mark.spec("gap.share-allowance")
def test_the_share_allowance_is_61_and_counts_what_is_usable(
    service: RunningService, api: Api
) -> None:
    service.set_account(shares=2)
    end = format_rfc3339(service.service.clock.now().replace(microsecond=0)).replace("Z", "+00:00")
    first = api.created()
    api.created()
    assert refusal(api.create()) == (403, 61)
    api.http.delete(f"/shares/{first}")
    assert api.created(expired_at=end)
    assert api.create().status_code == 201, "what has ended by time does not count"
    assert refusal(api.create()) == (403, 61)
    service.set_account(shares=3)
    assert api.create().status_code == 201
    service.set_account(shares="plan")
    assert api.create().status_code == 201


@pytest.mark.spec("gap.share-allowance")
def test_a_request_takes_nothing_of_the_share_allowance(service: RunningService, api: Api) -> None:
    service.set_account(shares=1)
    for _ in range(3):
        api.asked()
    assert [api.create().status_code for _ in range(2)] == [201, 403]


@pytest.mark.spec("credential.organization")
def test_a_team_key_has_the_organisations_access(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    service.set_account("alice", plan="none")
    assert mint(service, account="alice") == 98
    api = caller(service, account="alice", organization="team")
    assert api.http.get("/shares").status_code == 200
    service.set_account(ORG, plan="none")
    assert denied(service, api.http.get("/shares"))
    assert mint(service, account="bob", organization="team") == 98
    assert mint(service, account="bob") is None


@pytest.mark.spec("credential.organization")
def test_a_team_key_has_the_organisations_rate(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    service.set_account("alice", requests_per_minute=1)
    own, team = (
        caller(service, account="alice"),
        caller(service, account="alice", organization="team"),
    )
    assert [own.http.get("/shares").status_code for _ in range(3)] == [200, 200, 429]
    assert [team.http.get("/shares").status_code for _ in range(9)] == [200] * 9
    service.set_account(ORG, requests_per_minute=2)
    assert [team.http.get("/shares").status_code for _ in range(9)].count(429) >= 5


def test_without_a_rate_nothing_is_counted(service: RunningService, api: Api) -> None:
    service.set_account(requests_per_minute="unlimited")
    assert {api.http.get("/shares").status_code for _ in range(300)} == {200}, "200 at once before"
    service.set_account(requests_per_minute=1)
    assert [api.http.get("/shares").status_code for _ in range(3)] == [200, 200, 429]


def test_a_limit_of_something_else_cannot_be_unlimited(service: RunningService) -> None:
    with pytest.raises(control_client.RehearsalError, match="must be a number from 1, or plan"):
        control_client.set_account(service.origin, shares="unlimited")


@pytest.mark.spec("credential.organization", "plan.allowance")
def test_a_team_key_takes_a_slot_of_the_organisation(service: RunningService) -> None:
    members = ["alice", "bob", "carol", "alice", "bob"]
    assert [mint(service, account=member, organization="team") for member in members] == [None] * 5
    assert mint(service, account="dave", organization="team") == 100
    assert [mint(service, account="alice") for _ in range(6)] == [None] * 5 + [100]
    assert mint(service, account="alice", organization="another") is None


@pytest.mark.spec("events.owner", "events.deleted", "share.active.delete", "share.delete.event")
def test_when_a_team_key_expires_a_share_its_owner_gets_the_event(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    owner = caller(service, account="alice", organization="team")
    other = caller(service, account="bob", organization="team")
    code = owner.created()
    assert other.codes() == [code]
    assert other.http.delete(f"/shares/{code}").status_code == 200
    assert [(event.account, event.payload) for event in service.events()] == [
        ("alice", {"event": "share.deleted", "short_code": code})
    ]


SPACES: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"account": "alice"}, {"account": "bob"}),
    ({"account": "alice"}, {"account": "alice", "organization": "team"}),
    ({"account": "alice", "organization": "team"}, {"account": "alice"}),
    ({"account": "alice", "organization": "team"}, {"account": "alice", "organization": "another"}),
]


@pytest.mark.spec(
    "errors.ownership", "share.show.errors-1", "share.delete.1", "request.show.404", "errors.1"
)
@pytest.mark.parametrize(("one", "another"), SPACES)
def test_another_accounts_or_organisations_items_are_not_there(
    service: RunningService,
    caller: Callable[..., Api],
    one: dict[str, str],
    another: dict[str, str],
) -> None:
    theirs, mine = caller(service, **one), caller(service, **another)
    share, request = theirs.created(), theirs.asked()
    for method, what, code, suffix in (
        ("GET", "shares", share, ""),
        ("DELETE", "shares", share, ""),
        ("GET", "requests", request, ""),
        ("GET", "requests", request, "/submissions"),
        ("DELETE", "requests", request, ""),
    ):
        nothing = mine.http.request(method, f"/{what}/unknown{suffix}")
        response = mine.http.request(method, f"/{what}/{code}{suffix}")
        assert (nothing.status_code, response.status_code, response.content) == (
            404,
            404,
            nothing.content,
        )
        assert response.headers.keys() == nothing.headers.keys()
    assert mine.codes() == mine.codes(what="requests") == []
    assert (theirs.codes(), theirs.codes(what="requests")) == ([share], [request])
