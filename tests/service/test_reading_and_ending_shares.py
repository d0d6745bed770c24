"""GET and DELETE of shares: lists, metadata, what has ended (specification: States, Endpoints)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import format_rfc3339
from service.callers import TOKEN, Api, refusal

VERIFIER = "v" * 43


def end_by_time(service: RunningService, api: Api) -> str:
    code = api.created(expired_at=format_rfc3339(service.service.clock.now() + timedelta(hours=1)))
    service.advance(3600)
    return code


def end_by_views(service: RunningService, api: Api) -> str:
    code = api.created(access_counts_left=2)
    for _ in range(2):
        send_request(service.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN})
    return code


def end_by_attempts(service: RunningService, api: Api) -> str:
    code = api.created(passcode_verifier=VERIFIER)
    for _ in range(5):
        send_request(service.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN})
    return code


def end_by_deletion(_: RunningService, api: Api) -> str:
    code = api.created()
    assert api.http.delete(f"/shares/{code}").status_code == 200
    return code


ENDINGS = [end_by_time, end_by_views, end_by_attempts, end_by_deletion]
GONE_BY_ITSELF = ENDINGS[:3]


@pytest.mark.spec(
    "route.shares.list",
    "share.list.answer",
    "share.item",
    "envelope.list",
    "pagination.page",
    "pagination.limit",
    "pagination.total_pages",
    "pagination.total",
    "scopes.shares-read",
)
def test_the_list_is_newest_first_with_pagination(api: Api) -> None:
    codes = [api.created() for _ in range(3)]
    assert api.http.get("/shares").json() == {
        "shares": [{"short_code": code, "expired_at": None} for code in reversed(codes)],
        "pagination": {"page": 1, "limit": 25, "total_pages": 1, "total": 3},
    }


@pytest.mark.spec("envelope.list")
def test_an_empty_list_is_an_array(api: Api) -> None:
    assert api.http.get("/shares").json() == {
        "shares": [],
        "pagination": {"page": 1, "limit": 25, "total_pages": 0, "total": 0},
    }


CORRECTED = [
    ("", 1, 25),
    ("?page=2", 2, 25),
    ("?limit=100", 1, 100),
    ("?limit=101", 1, 100),
    ("?limit=999999999999999", 1, 100),
    ("?limit=0", 1, 25),
    ("?limit=-1", 1, 25),
    ("?limit=ten", 1, 25),
    ("?limit=1_0", 1, 25),
    ("?limit=2.5", 1, 25),
    ("?limit=%D9%A3", 1, 25),
    ("?page=0", 1, 25),
    ("?page=-3", 1, 25),
    ("?page=x&limit=7", 1, 7),
    ("?page=", 1, 25),
    ("?page=" + "9" * 5000, 999999999999999, 25),
    ("?page=999999999999999&limit=100", 999999999999999, 100),
    ("?status=nonsense&unknown=1", 1, 25),
]


@pytest.mark.spec("gap.shares-query")
@pytest.mark.parametrize(("query", "page", "limit"), CORRECTED, ids=lambda value: str(value)[:30])
def test_paging_is_corrected_and_never_rejected(
    api: Api, query: str, page: int, limit: int
) -> None:
    api.created()
    response = api.http.get(f"/shares{query}")
    assert response.status_code == 200
    assert response.json()["pagination"] == {
        "page": page,
        "limit": limit,
        "total_pages": 1,
        "total": 1,
    }


@pytest.mark.spec("gap.shares-query", "pagination.total_pages")
def test_pages_cover_everything_once(api: Api) -> None:
    codes = [api.created() for _ in range(7)]
    pages = [api.codes(f"?limit=3&page={page}") for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert [code for page in pages for code in page] == codes[::-1]
    assert api.http.get("/shares?limit=3").json()["pagination"]["total_pages"] == 3


@pytest.mark.spec(
    "share.list.answer", "share.used-up", "share.exhausted", "share.states", "gap.lists.status"
)
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.usefixtures("extended")
def test_what_ended_leaves_the_list_and_is_in_the_list_of_ended(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    stays = api.created()
    code = end(service, api)
    assert api.codes() == [stays]
    assert api.codes("?status=active") == [stays]
    assert api.codes("?status=expired") == [code]
    assert api.http.get("/shares?status=expired").json()["pagination"]["total"] == 1


@pytest.mark.usefixtures("extended")
def test_the_list_of_ended_is_newest_ending_first(service: RunningService, api: Api) -> None:
    last = api.created()
    codes = []
    for end in (end_by_views, end_by_time, end_by_attempts):
        codes.append(end(service, api))
        service.advance(1)
    api.http.delete(f"/shares/{last}")
    assert api.codes("?status=expired") == [last, *codes[::-1]]


@pytest.mark.spec(
    "route.shares.show",
    "share.metadata.two",
    "share.metadata.nothing-else",
    "share.show.answer",
    "share.show.free",
    "rules.metadata-only",
    "scopes.shares-read",
)
def test_metadata_has_exactly_two_members(api: Api) -> None:
    code = api.created(title="t", access_counts_left=1, expired_at="2099-01-01T00:00:00Z")
    for _ in range(5):
        response = api.http.get(f"/shares/{code}")
        assert response.status_code == 200
        assert response.json() == {"short_code": code, "expired_at": "2099-01-01T00:00:00Z"}
    assert api.codes() == [code]


@pytest.mark.spec("share.metadata.unchanged", "share.used-up")
@pytest.mark.parametrize("end", GONE_BY_ITSELF)
def test_metadata_of_what_ended_by_itself_stays_as_it_was(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    code = end(service, api)
    response = api.http.get(f"/shares/{code}")
    assert (response.status_code, response.json()["short_code"]) == (200, code)
    assert (response.json()["expired_at"] is not None) == (end is end_by_time)


@pytest.mark.spec("share.show.errors-1", "gap.order")
def test_metadata_of_a_deleted_share_is_404(api: Api) -> None:
    code = end_by_deletion(None, api)  # type: ignore[arg-type]  # the service is not needed
    assert refusal(api.http.get(f"/shares/{code}")) == (404, 1)


@pytest.mark.spec(
    "rules.opaque-codes", "share.show.errors-1", "share.delete.1", "errors.1", "gap.codes-in-links"
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("code", ["unknown", "%2e%2e", "a%2Fb", "%ff", "%20", "%00", "x" * 3000])
def test_a_short_code_that_is_not_there_is_404(api: Api, method: str, code: str) -> None:
    assert refusal(api.http.request(method, f"/shares/{code}")) == (404, 1)


@pytest.mark.spec(
    "route.shares.delete",
    "share.delete.answer",
    "envelope.share-delete",
    "share.active.delete",
    "scopes.shares-write",
)
def test_deleting_answers_200_and_ends_the_share_at_once(service: RunningService, api: Api) -> None:
    code = api.created(access_counts_left=5, expired_at="2099-01-01T00:00:00Z")
    response = api.http.delete(f"/shares/{code}")
    assert (response.status_code, response.json()) == (200, {"success": True, "message": "ok"})
    status, told = send_request(
        service.origin, "POST", f"/links/shares/{code}/open", {"access_token": TOKEN}
    )
    assert (status, told["reason"]) == (410, "deleted")


@pytest.mark.spec("events.emitted", "events.deleted", "share.delete.event", "share.active.delete")
def test_deleting_emits_share_deleted_for_the_owner(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    api = caller(service, account="owner")
    code = api.created()
    for _ in range(2):
        api.http.delete(f"/shares/{code}")
    assert [(event.account, event.payload) for event in service.events()] == [
        ("owner", {"event": "share.deleted", "short_code": code})
    ]


@pytest.mark.spec("share.expired.delete", "share.delete.again", "share.delete.1", "errors.1")
@pytest.mark.parametrize("end", ENDINGS)
def test_deleting_what_has_ended_is_404(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    code = end(service, api)
    assert refusal(api.http.delete(f"/shares/{code}")) == (404, 1)
    assert refusal(api.http.delete(f"/shares/{code}")) == (404, 1)


@pytest.mark.spec("share.delete.44", "errors.44")
@pytest.mark.parametrize("path", ["/shares", "/shares/"])
def test_deleting_without_a_short_code_is_44_and_deletes_nothing(api: Api, path: str) -> None:
    code = api.created()
    assert refusal(api.http.delete(path)) == (400, 44)
    assert api.codes() == [code]


@pytest.mark.spec("errors.ownership", "share.show.errors-1", "share.delete.1", "errors.1")
def test_anothers_share_is_as_if_it_were_not_there(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    mine, theirs = caller(service, account="mine"), caller(service, account="theirs")
    code = theirs.created()
    nothing = mine.http.get("/shares/unknown")
    assert mine.http.get(f"/shares/{code}").content == nothing.content
    assert mine.http.delete(f"/shares/{code}").content == nothing.content
    assert mine.codes() == mine.codes("?status=expired") == []
    assert theirs.codes() == [code]


def test_two_keys_of_an_account_see_the_same_shares(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    one, two = caller(service), caller(service)
    code = one.created()
    assert two.codes() == [code]
    assert two.http.delete(f"/shares/{code}").status_code == 200
    assert one.codes() == []
