"""GET /v1/stats: counts, and fourteen days of views (specification: Stats; gaps: their shape)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import format_rfc3339
from service.callers import NOON, TOKEN, Api, refusal

DAY = 24 * 3600


@pytest.fixture
def service(service_at_noon: RunningService) -> RunningService:
    return service_at_noon


def opened(service: RunningService, code: str, times: int = 1) -> None:
    for _ in range(times):
        assert (
            send_request(
                service.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN}
            )[0]
            == 200
        )


def stats(api: Api) -> dict[str, Any]:
    response = api.http.get("/stats")
    assert response.status_code == 200
    told: dict[str, Any] = response.json()
    return told


def per_day(api: Api) -> list[int]:
    return [day["count"] for day in stats(api)["daily_views"]]


@pytest.mark.spec(
    "route.stats", "stats.figures", "stats.answer", "stats.scope", "scopes.stats-read", "gap.stats"
)
def test_without_anything_all_figures_are_zero(api: Api) -> None:
    days = [(NOON - timedelta(days=ago)).date().isoformat() for ago in range(13, -1, -1)]
    assert stats(api) == {
        "shares": {"active": 0, "expired": 0, "total_viewed": 0},
        "daily_views": [{"date": day, "count": 0} for day in days],
    }


@pytest.mark.spec("gap.stats", "stats.figures")
def test_the_days_are_fourteen_oldest_first_and_zero_filled(
    service: RunningService, api: Api
) -> None:
    code = api.created()
    opened(service, code, 2)
    service.advance(3 * DAY)
    opened(service, code)
    assert per_day(api) == [0] * 10 + [2, 0, 0, 1]
    service.advance(10 * DAY)
    assert per_day(api) == [2, 0, 0, 1] + [0] * 10
    service.advance(DAY)
    assert per_day(api) == [0, 0, 1] + [0] * 11
    assert stats(api)["shares"]["total_viewed"] == 3


@pytest.mark.spec("gap.stats")
def test_a_day_is_the_services_day_in_utc(service: RunningService, api: Api) -> None:
    code = api.created()
    service.advance(DAY / 2 - 1)
    opened(service, code)
    assert stats(api)["daily_views"][-1] == {"date": "2031-03-01", "count": 1}
    service.advance(1)
    opened(service, code)
    assert stats(api)["daily_views"][-2:] == [
        {"date": "2031-03-01", "count": 1},
        {"date": "2031-03-02", "count": 1},
    ]


@pytest.mark.spec("gap.stats", "share.show.free")
def test_only_an_opening_counts_as_a_view_and_counts_once(
    service: RunningService, api: Api
) -> None:
    code = api.created(access_counts_left=2, passcode_verifier="v" * 43)
    path = f"/links/shares/{code}"
    api.http.get(f"/shares/{code}")
    send_request(service.origin, "GET", path)
    send_request(service.origin, "POST", f"{path}/open", {"access_token": "x" * 43})
    send_request(service.origin, "POST", f"{path}/open", {"access_token": TOKEN})
    assert stats(api)["shares"] == {"active": 1, "expired": 0, "total_viewed": 0}
    proof = {"access_token": TOKEN, "passcode_verifier": "v" * 43}
    statuses = [send_request(service.origin, "POST", f"{path}/open", proof)[0] for _ in range(4)]
    assert statuses == [200, 200, 410, 410]
    assert stats(api)["shares"] == {"active": 0, "expired": 1, "total_viewed": 2}
    assert per_day(api)[-1] == 2


@pytest.mark.spec("stats.figures", "gap.stats", "share.states")
def test_active_and_expired_count_shares_by_how_they_stand(
    service: RunningService, api: Api
) -> None:
    api.created()
    api.http.delete(f"/shares/{api.created()}")
    api.created(expired_at=format_rfc3339(service.service.clock.now() + timedelta(hours=1)))
    opened(service, api.created(access_counts_left=1))
    api.asked()
    assert stats(api)["shares"] == {"active": 2, "expired": 2, "total_viewed": 1}
    service.advance(3600)
    assert stats(api)["shares"] == {"active": 1, "expired": 3, "total_viewed": 1}


@pytest.mark.spec("gap.stats", "errors.ownership")
def test_another_accounts_figures_are_its_own(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    mine, theirs = caller(service, account="mine"), caller(service, account="theirs")
    opened(service, theirs.created())
    assert stats(mine)["shares"] == {"active": 0, "expired": 0, "total_viewed": 0}
    assert sum(per_day(mine)) == 0
    assert stats(theirs)["shares"] == {"active": 1, "expired": 0, "total_viewed": 1}
    assert stats(caller(service, account="theirs"))["shares"]["active"] == 1


@pytest.mark.spec("stats.scope", "scopes.stats-read")
def test_stats_want_their_scope(service: RunningService, caller: Callable[..., Api]) -> None:
    assert refusal(caller(service, scopes=["shares:read", "requests:read"]).http.get("/stats")) == (
        403,
        78,
    )
    assert stats(caller(service, scopes=["stats:read"]))["shares"]["active"] == 0
