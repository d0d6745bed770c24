"""Secure requests once they exist: list, show, submissions, delete (specification: Endpoints; gaps:
their bodies).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from sealpipe.wire import fields, sealed_box
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import format_rfc3339, parse_rfc3339
from service.callers import PAIR, PUBLIC_KEY, Api, refusal


def link(service: RunningService, code: str) -> str:
    return f"{service.link_base_url}/r/{code}"


def ended_by_time(service: RunningService, api: Api) -> str:
    code = api.asked(expired_at=format_rfc3339(service.service.clock.now() + timedelta(hours=1)))
    service.advance(3600)
    return code


def ended_by_deletion(_: RunningService, api: Api) -> str:
    code = api.asked()
    assert api.delete_request(code).json() == {"short_code": code, "outcome": "expired"}
    return code


ENDINGS = [ended_by_time, ended_by_deletion]


@pytest.mark.spec(
    "route.requests.list",
    "request.list.answer",
    "request.list.always",
    "request.list.order",
    "request.list.active",
    "request.short_code",
    "pagination.page",
    "pagination.limit",
    "pagination.total_pages",
    "pagination.total",
    "envelope.list",
    "scopes.requests-read",
)
def test_the_list_is_newest_first_with_pagination(api: Api) -> None:
    codes = [api.asked(expired_at="2099-01-01T00:00:00Z") for _ in range(3)]
    assert api.http.get("/requests").json() == {
        "requests": [
            {"short_code": code, "expired_at": "2099-01-01T00:00:00Z", "public_key": PUBLIC_KEY}
            for code in reversed(codes)
        ],
        "pagination": {"page": 1, "limit": 25, "total_pages": 1, "total": 3},
    }


@pytest.mark.spec("request.list.always", "envelope.list")
def test_an_empty_list_is_an_array(api: Api) -> None:
    assert api.http.get("/requests").json() == {
        "requests": [],
        "pagination": {"page": 1, "limit": 25, "total_pages": 0, "total": 0},
    }


CORRECTED = [
    ("", 1, 25),
    ("?page=2", 2, 25),
    ("?page=0", 1, 25),
    ("?page=-1", 1, 25),
    ("?page=x", 1, 25),
    ("?page=1.5", 1, 25),
    ("?page=%2B1", 1, 25),
    ("?limit=1", 1, 1),
    ("?limit=100", 1, 100),
    ("?limit=101", 1, 100),
    ("?limit=99999999999999999999", 1, 100),
    ("?page=99999999999999999999", 999999999999999, 25),
    ("?limit=0", 1, 25),
    ("?limit=-5", 1, 25),
    ("?limit=", 1, 25),
    ("?limit=1e2", 1, 25),
]


@pytest.mark.spec(
    "request.list.page", "request.list.limit", "request.list.corrected", "limits.list-limit"
)
@pytest.mark.parametrize(("query", "page", "limit"), CORRECTED, ids=lambda value: str(value)[:30])
def test_paging_is_corrected_and_never_rejected(
    api: Api, query: str, page: int, limit: int
) -> None:
    api.asked()
    response = api.http.get(f"/requests{query}")
    assert response.status_code == 200
    assert response.json()["pagination"] == {
        "page": page,
        "limit": limit,
        "total_pages": 1,
        "total": 1,
    }


@pytest.mark.spec("request.list.page", "pagination.total_pages", "request.list.order")
def test_pages_cover_everything_once(api: Api) -> None:
    codes = [api.asked() for _ in range(7)]
    pages = [api.codes(f"?limit=3&page={page}", "requests") for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert [code for page in pages for code in page] == codes[::-1]
    assert api.http.get("/requests?limit=3").json()["pagination"]["total_pages"] == 3


@pytest.mark.spec(
    "request.list.active", "request.states", "request.expired.readable", "gap.lists.status"
)
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.usefixtures("extended")
def test_what_ended_leaves_the_list_and_stays_readable(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    stays = api.asked()
    code = end(service, api)
    assert api.codes(what="requests") == [stays]
    assert api.codes("?status=expired", "requests") == [code]
    (item,) = api.http.get("/requests?status=expired").json()["requests"]
    assert item == {"short_code": code, "expired_at": None, "public_key": None}
    assert api.http.get(f"/requests/{code}").status_code == 200


@pytest.mark.spec(
    "route.requests.show",
    "request.show.active",
    "request.expired_at",
    "request.public_key",
    "scopes.requests-read",
)
def test_an_active_request_shows_when_it_ends_and_its_public_key(
    service: RunningService, api: Api
) -> None:
    code = api.asked(expired_at="2099-01-01T00:00:00Z")
    told = api.http.get(f"/requests/{code}").json()
    assert told == {
        "short_code": code,
        "expired_at": "2099-01-01T00:00:00Z",
        "public_key": PUBLIC_KEY,
    }
    assert datetime.fromisoformat(told["expired_at"]) > service.service.clock.now()


@pytest.mark.spec("request.show.ended", "request.expired_at", "request.public_key")
@pytest.mark.parametrize("end", ENDINGS)
def test_one_that_ended_shows_null_and_no_public_key(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    code = end(service, api)
    response = api.http.get(f"/requests/{code}")
    assert (response.status_code, response.json()) == (
        200,
        {"short_code": code, "expired_at": None},
    )


@pytest.mark.spec("request.reads", "request.active.delete")
def test_reads_change_nothing_and_spend_nothing(service: RunningService, api: Api) -> None:
    code = api.asked(access_counts_left=1, max_submission=1)
    paths = ("", "?status=expired", f"/{code}", f"/{code}/submissions")
    before = [api.http.get(f"/requests{path}").content for path in paths]
    for _ in range(5):
        assert [api.http.get(f"/requests{path}").content for path in paths] == before
    row = service.service.database.row("SELECT access_counts_left, ended_at FROM requests", {})
    assert row is not None
    assert tuple(row) == (1, None)
    assert api.delete_request(code).json()["outcome"] == "expired"


@pytest.mark.spec("request.reads", "request.expired.delete")
def test_reading_one_that_ended_does_not_remove_it(service: RunningService, api: Api) -> None:
    code = ended_by_time(service, api)
    for _ in range(3):
        assert api.http.get(f"/requests/{code}").status_code == 200
    assert api.delete_request(code).json()["outcome"] == "deleted"


@pytest.mark.spec(
    "route.requests.submissions",
    "submissions.scope",
    "submissions.ciphertext",
    "submission.sealed",
    "rules.one-content-read",
    "gap.submissions",
    "gap.sealed-submission",
    "scopes.requests-read",
)
def test_submissions_come_sealed_oldest_first_and_the_seed_opens_them(
    service: RunningService, api: Api
) -> None:
    code = api.asked()
    people = service.submitter()
    codes = [people.submit(link(service, code), {"Password": f"p{n}"}) for n in range(3)]
    told = api.http.get(f"/requests/{code}/submissions").json()
    assert told.keys() == {"submissions", "count", "skipped_not_end_to_end_encrypted"}
    assert (told["count"], told["skipped_not_end_to_end_encrypted"]) == (3, 0)
    assert [each["short_code"] for each in told["submissions"]] == codes
    for number, each in enumerate(told["submissions"]):
        assert each.keys() == {"short_code", "data", "created_at", "encryption_type"}
        assert each["encryption_type"] == "e2ee-aes256-gcm"
        assert parse_rfc3339(each["created_at"]) is not None
        (field,) = fields.load(sealed_box.open(PAIR, each["data"]))
        assert (field.key, field.value, field.type) == ("Password", f"p{number}", "password")


@pytest.mark.spec("gap.submissions")
def test_what_is_not_end_to_end_encrypted_is_counted_and_not_given(
    service: RunningService, api: Api
) -> None:
    code = api.asked()
    people = service.submitter()
    kept = people.submit(link(service, code), {"Password": "p"})
    for _ in range(2):
        people.send(link(service, code), "AAAA", encryption_type="server-side")
    told = api.http.get(f"/requests/{code}/submissions").json()
    assert [each["short_code"] for each in told["submissions"]] == [kept]
    assert (told["count"], told["skipped_not_end_to_end_encrypted"]) == (1, 2)


@pytest.mark.spec("gap.submissions")
def test_all_submissions_are_in_one_answer(service: RunningService, api: Api) -> None:
    code = api.asked()
    for _ in range(101):
        service.submitter().send(link(service, code), "AAAA")
    told = api.http.get(f"/requests/{code}/submissions?limit=1&page=2").json()
    assert (len(told["submissions"]), told["count"]) == (101, 101)


@pytest.mark.spec(
    "route.requests.delete",
    "request.delete.outcome",
    "request.delete.response",
    "request.active.delete",
    "scopes.requests-write",
)
@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.usefixtures("extended")
def test_the_first_delete_expires_and_keeps_what_was_submitted(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    code = end(service, api)
    other = api.asked()
    service.submitter().submit(link(service, other), {"Password": "p"})
    assert api.delete_request(other).json() == {"short_code": other, "outcome": "expired"}
    assert api.http.get(f"/requests/{other}/submissions").json()["count"] == 1
    assert set(api.codes("?status=expired", "requests")) == {code, other}


@pytest.mark.spec(
    "request.expired.delete",
    "request.deleted.delete",
    "request.delete.twice",
    "request.delete.outcome",
    "request.delete.70",
    "errors.70",
)
@pytest.mark.parametrize("end", ENDINGS)
def test_a_delete_after_the_end_is_for_good(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str]
) -> None:
    code = end(service, api)
    assert api.delete_request(code).json() == {"short_code": code, "outcome": "deleted"}
    nothing = api.http.get("/requests/unknown")
    assert refusal(nothing) == (404, 70)
    assert api.delete_request(code).content == api.delete_request(code).content == nothing.content
    assert api.http.get(f"/requests/{code}/submissions").content == nothing.content
    assert api.codes("?status=expired", "requests") == []


@pytest.mark.spec("request.expired.delete", "request.delete.twice")
def test_deleting_twice_destroys_the_submissions(service: RunningService, api: Api) -> None:
    code = api.asked()
    service.submitter().submit(link(service, code), {"Password": "p"})
    assert [api.delete_request(code).json()["outcome"] for _ in range(2)] == ["expired", "deleted"]
    assert service.service.database.rows("SELECT * FROM submissions", {}) == []
    assert service.service.database.rows("SELECT * FROM requests", {}) == []


@pytest.mark.spec("errors.44", "request.delete.44")
@pytest.mark.parametrize("path", ["/requests", "/requests/"])
def test_deleting_without_a_short_code_is_44_and_deletes_nothing(api: Api, path: str) -> None:
    code = api.asked()
    assert refusal(api.http.delete(path)) == (400, 44)
    assert api.codes(what="requests") == [code]


@pytest.mark.spec("request.show.404", "errors.70", "request.show.errors-70")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("code", ["unknown", "%2e%2e", "a%2Fb", "%ff", "%20", "%00", "x" * 3000])
def test_a_short_code_that_is_not_there_is_404(api: Api, method: str, code: str) -> None:
    assert refusal(api.http.request(method, f"/requests/{code}")) == (404, 70)


@pytest.mark.spec(
    "request.show.ownership",
    "request.show.404",
    "request.delete.ownership",
    "errors.ownership",
    "request.delete.70",
)
@pytest.mark.parametrize("end", [None, *ENDINGS])
def test_anothers_request_is_as_if_it_were_not_there(
    service: RunningService,
    caller: Callable[..., Api],
    end: Callable[[RunningService, Api], str] | None,
) -> None:
    mine, theirs = caller(service, account="mine"), caller(service, account="theirs")
    code = end(service, theirs) if end else theirs.asked()
    for suffix in ("", "/submissions"):
        nothing = mine.http.get(f"/requests/unknown{suffix}")
        assert refusal(nothing) == (404, 70)
        assert mine.http.get(f"/requests/{code}{suffix}").content == nothing.content
    assert mine.delete_request(code).content == mine.delete_request("unknown").content
    assert mine.codes(what="requests") == mine.codes("?status=expired", "requests") == []
    assert theirs.http.get(f"/requests/{code}").status_code == 200


def test_a_share_and_a_request_do_not_answer_under_each_others_path(api: Api) -> None:
    share, request = api.created(), api.asked()
    assert refusal(api.http.get(f"/requests/{share}")) == (404, 70)
    assert refusal(api.http.get(f"/shares/{request}")) == (404, 1)


@pytest.mark.spec("request.list.errors-11", "errors.11")
def test_a_list_query_that_fails_is_500_with_11(service: RunningService, api: Api) -> None:
    service.service.failing["requests.listing"] = 1
    assert refusal(api.http.get("/requests")) == (500, 11)
    assert api.http.get("/requests").status_code == 200


@pytest.mark.spec("request.delete.11", "errors.11")
@pytest.mark.parametrize("end", [None, ended_by_deletion])
def test_a_request_that_could_not_be_ended_is_500_with_11_and_is_as_it_was(
    service: RunningService, api: Api, end: Callable[[RunningService, Api], str] | None
) -> None:
    code = end(service, api) if end else api.asked()
    before = api.http.get(f"/requests/{code}").content
    service.service.failing["request.ending"] = 1
    assert refusal(api.delete_request(code)) == (500, 11)
    assert api.http.get(f"/requests/{code}").content == before
    assert api.delete_request(code).status_code == 200
