"""The rate of each API key: a burst, a refill by the clock, 429 with Retry-After (specification:
Limits, Common).
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from service.callers import NO_TLS, NOON, Api, refusal


@pytest.fixture
def service(service_at_noon: RunningService) -> RunningService:
    return service_at_noon


def statuses(api: Api, calls: int) -> list[int]:
    return [api.http.get("/shares").status_code for _ in range(calls)]


def take(service: RunningService, api: Api, per_minute: int) -> int:
    now = NOON.timestamp()
    return service.service.store.take(api.key_id, per_minute, now)


@pytest.mark.spec(
    "limits.business", "limits.enterprise", "limits.burst", "endpoints.rate", "errors.107"
)
@pytest.mark.parametrize(("plan", "burst"), [("business", 200), ("enterprise", 1200)])
def test_a_plans_burst_is_twice_its_rate(
    service: RunningService, caller: Callable[..., Api], plan: str, burst: int
) -> None:
    service.set_account(plan=plan)
    api = caller(service)
    assert statuses(api, 1) == [200]
    for _ in range(burst - 3):  # what is between needs no wire
        assert take(service, api, burst // 2) == 0
    assert statuses(api, 3) == [200, 200, 429]


@pytest.mark.spec("limits.business", "limits.burst")
def test_a_whole_burst_over_the_wire(api: Api) -> None:
    answers = statuses(api, 203)
    assert (answers.count(200), answers[200:]) == (200, [429, 429, 429])


@pytest.mark.spec("endpoints.rate", "errors.107", "envelope.error")
@pytest.mark.parametrize(
    ("per_minute", "seconds"), [(1, 60), (2, 30), (7, 9), (60, 1), (100, 1), (600, 1)]
)
def test_retry_after_is_the_whole_seconds_until_the_next_call(
    service: RunningService, api: Api, per_minute: int, seconds: int
) -> None:
    service.set_account(requests_per_minute=per_minute)
    for _ in range(per_minute * 2):
        take(service, api, per_minute)
    response = api.http.get("/shares")
    assert refusal(response) == (429, 107)
    assert response.headers["retry-after"] == str(seconds)
    service.advance(seconds - 1 + 0.001)
    assert statuses(api, 1) == [429]
    service.advance(0.999)
    assert statuses(api, 1) == [200]


@pytest.mark.spec("limits.burst")
def test_it_refills_by_the_clock_up_to_the_burst(service: RunningService, api: Api) -> None:
    service.set_account(requests_per_minute=3)
    assert statuses(api, 7) == [200] * 6 + [429]
    service.advance(40)
    assert statuses(api, 3) == [200, 200, 429]
    for seconds in (600, 7 * 24 * 3600):  # while its bucket is kept, and long after
        service.advance(seconds)
        assert statuses(api, 7) == [200] * 6 + [429]


def test_a_refused_call_costs_nothing(service: RunningService, api: Api) -> None:
    service.set_account(requests_per_minute=1)
    assert statuses(api, 2) == [200, 200]
    waits = []
    for _ in range(3):
        service.advance(19)
        waits.append(api.http.get("/shares").headers["retry-after"])
    assert waits == ["41", "22", "3"]
    service.advance(3)
    assert statuses(api, 2) == [200, 429]


def test_each_key_has_its_own(service: RunningService, caller: Callable[..., Api]) -> None:
    service.set_account(requests_per_minute=1)
    one, two = caller(service), caller(service)
    assert statuses(one, 3) == [200, 200, 429]
    assert statuses(two, 3) == [200, 200, 429]


@pytest.mark.spec("limits.raised")
def test_the_operator_can_raise_a_rate_and_give_the_plans_back(
    service: RunningService, api: Api
) -> None:
    service.set_account(requests_per_minute=1)
    assert statuses(api, 3) == [200, 200, 429]
    service.set_account(requests_per_minute=600)
    service.advance(1)
    assert statuses(api, 11) == [200] * 10 + [429]
    service.set_account(requests_per_minute="plan")
    service.advance(3)
    assert statuses(api, 6) == [200] * 5 + [429]


@pytest.mark.spec("limits.rate-unset", "gateway.403", "plan.capability")
def test_a_rate_that_is_unset_is_no_access_and_not_no_limit(
    service: RunningService, api: Api
) -> None:
    service.set_account(requests_per_minute="unset")
    nobody = httpx.get(
        f"{service.base_url}/shares",
        headers={"Authorization": "Bearer x"},
        trust_env=False,
        verify=NO_TLS,
    )
    assert (nobody.status_code, api.http.get("/shares").content) == (403, nobody.content)
    service.set_account(requests_per_minute="plan")
    assert statuses(api, 1) == [200]


ROUTES = [
    ("POST", "/shares"),
    ("GET", "/shares"),
    ("GET", "/shares/x"),
    ("DELETE", "/shares/x"),
    ("DELETE", "/shares"),
    ("POST", "/requests"),
    ("GET", "/requests"),
    ("GET", "/requests/x"),
    ("GET", "/requests/x/submissions"),
    ("DELETE", "/requests/x"),
    ("GET", "/stats"),
]


@pytest.mark.spec(
    "endpoints.rate",
    "share.show.errors-429",
    "share.delete.429",
    "request.list.errors-429",
    "request.show.errors-429",
    "request.delete.429",
    "errors.107",
)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_is_behind_it(
    service: RunningService, api: Api, method: str, path: str
) -> None:
    service.set_account(requests_per_minute=1)
    assert statuses(api, 2) == [200, 200]
    response = api.http.request(method, path)
    assert (refusal(response), response.headers["retry-after"]) == ((429, 107), "60")
