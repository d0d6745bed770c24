"""The order of checks: gateway, rate, scope, idempotency header, replay, validation, plan (gaps:
order of checks).

Each test breaks two neighbours at once, and sees the answer of the first.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from service.callers import Api, by_hand, refusal

VERIFIER = "v" * 43
CREATES = ["shares", "requests"]


def spend_the_rate(service: RunningService, api: Api) -> None:
    service.set_account(requests_per_minute=1)
    for _ in range(2):
        api.http.get("/shares")


def create(api: Api, what: str, key: str | None = "", **changes: object) -> httpx.Response:
    return api.create(key, **changes) if what == "shares" else api.ask(key, **changes)


@pytest.mark.spec("gap.order")
@pytest.mark.parametrize("why", ["revoked", "no access"])
def test_gateway_before_rate(service: RunningService, api: Api, why: str) -> None:
    spend_the_rate(service, api)
    assert api.http.get("/shares").status_code == 429
    if why == "revoked":
        service.revoke_key(api.credential)
    else:
        service.set_account(plan="none")
    response = api.http.get("/shares")
    assert (response.status_code, list(response.json())) == (403, ["Message"])


@pytest.mark.spec("gap.order")
def test_rate_before_scope(service: RunningService, caller: Callable[..., Api]) -> None:
    api = caller(service, scopes=["shares:read"])
    spend_the_rate(service, api)
    assert refusal(api.http.get("/stats")) == (429, 107)
    service.advance(60)
    assert refusal(api.http.get("/stats")) == (403, 78)


@pytest.mark.spec("gap.order")
@pytest.mark.parametrize("what", CREATES)
def test_scope_before_the_idempotency_header(
    service: RunningService, caller: Callable[..., Api], what: str
) -> None:
    api = caller(service, scopes=["stats:read"])
    status, envelope = by_hand(service, "POST", f"/v1/{what}", {"Authorization": api.bearer})
    assert (status, envelope["error_code"]) == (403, 78)


@pytest.mark.spec("gap.order")
@pytest.mark.parametrize("what", CREATES)
def test_scope_before_what_is_not_there(
    service: RunningService, caller: Callable[..., Api], what: str
) -> None:
    api = caller(service, scopes=["stats:read"])
    assert refusal(api.http.get(f"/{what}/unknown")) == (403, 78)
    assert refusal(api.http.delete(f"/{what}/unknown")) == (403, 78)
    assert refusal(api.http.delete(f"/{what}")) == (403, 78)


@pytest.mark.spec("gap.order")
@pytest.mark.parametrize("what", CREATES)
def test_idempotency_header_before_validation(api: Api, what: str) -> None:
    assert refusal(create(api, what, None, title=1)) == (400, 104)


@pytest.mark.spec("gap.order", "idempotency.105")
@pytest.mark.parametrize("what", CREATES)
def test_replay_before_validation(api: Api, what: str) -> None:
    assert create(api, what, "k").status_code == 201
    assert refusal(create(api, what, "k", title=1)) == (409, 105)


@pytest.mark.spec("gap.order", "idempotency.replay")
def test_replay_before_plan(service: RunningService, api: Api) -> None:
    first = api.create("k", passcode_verifier=VERIFIER)
    service.set_account(view_protection=False, shares=1)
    replay = api.create("k", passcode_verifier=VERIFIER)
    assert (replay.status_code, replay.content) == (200, first.content)
    assert refusal(api.create("k2")) == (403, 61)


@pytest.mark.spec("gap.order", "gap.content-type")
@pytest.mark.parametrize("what", CREATES)
def test_replay_before_the_content_type_and_that_before_plan(
    service: RunningService, api: Api, what: str
) -> None:
    api.http.headers["Content-Type"] = "text/plain"
    assert refusal(create(api, what, None)) == (400, 104)
    assert refusal(create(api, what, "k")) == (400, 19)
    api.http.headers["Content-Type"] = "application/json"
    assert create(api, what, "k").status_code == 201
    api.http.headers["Content-Type"] = "text/plain"
    assert create(api, what, "k").status_code == 200
    service.set_account(view_protection=False)
    assert refusal(api.create(passcode_verifier=VERIFIER)) == (400, 19)


@pytest.mark.spec("gap.order")
def test_validation_before_plan(service: RunningService, api: Api) -> None:
    api.created()
    service.set_account(view_protection=False, shares=1)
    assert refusal(api.create(passcode_verifier=VERIFIER, title=1)) == (400, 19)
    assert refusal(api.create(passcode_verifier=VERIFIER)) == (403, 53)


@pytest.mark.spec("gap.order")
def test_a_replay_still_costs_a_call(service: RunningService, api: Api) -> None:
    service.set_account(requests_per_minute=1)
    assert [api.create("k").status_code for _ in range(3)] == [201, 200, 429]


@pytest.mark.spec("gap.order", "errors.ownership")
def test_whose_it_is_before_whether_it_has_ended(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    theirs, mine = caller(service, account="theirs"), caller(service, account="mine")
    request, share = theirs.asked(), theirs.created()
    theirs.delete_request(request)
    theirs.http.delete(f"/shares/{share}")
    assert refusal(mine.delete_request(request)) == (404, 70)
    assert refusal(mine.http.delete(f"/shares/{share}")) == (404, 1)
    assert theirs.http.get(f"/requests/{request}").status_code == 200


@pytest.mark.spec("gap.order", "idempotency.scope")
def test_only_what_succeeded_is_stored_under_a_key(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    reader = caller(service, scopes=["shares:read"])
    assert refusal(reader.create("k")) == (403, 78)
    api = caller(service)
    service.set_account(view_protection=False)
    assert refusal(api.create("k", passcode_verifier=VERIFIER)) == (403, 53)
    service.set_account(view_protection=True)
    assert api.create("k", passcode_verifier=VERIFIER).status_code == 201
