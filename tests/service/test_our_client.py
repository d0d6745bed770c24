"""Our own client sees the rules of the service: what it is told where they hold (and so notices
where they break).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sealpipe import (
    AuthenticationError,
    Client,
    IdempotencyConflictError,
    InvalidRequestError,
    MissingScopeError,
    NotFoundError,
    OutcomeUnknownError,
    ProtocolError,
    QuotaExceededError,
    RateLimitError,
    RetriesExhaustedError,
    SealpipeError,
    ViewProtectionError,
    budget,
)
from sealpipe.api import shares
from sealpipe.api.shares import CreatedShare
from sealpipe.budget import Budget
from sealpipe.secret import Secret
from sealpipe.wire import fields, sealed_box
from sealpipe_rehearsal.faults import FAULTS
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from service.callers import DATA, PAIR, PUBLIC_KEY, TOKEN, WRAP
from support.damage import exchanged

SHARE: dict[str, Any] = {"data": DATA, "access_token": TOKEN}
REQUEST: dict[str, Any] = {
    "title": "t",
    "public_key": PAIR.public_key,
    "fields": [("Password", "password")],
}
IN_2099 = datetime(2099, 1, 1, tzinfo=UTC)
Connect = Callable[..., Client]


@pytest.fixture
def connect(service: RunningService) -> Iterator[Connect]:
    """Make a client; keyword arguments make its key."""
    with ExitStack() as stack:

        def make(credential: Secret | None = None, **key: Any) -> Client:
            return stack.enter_context(
                Client(
                    api_key=credential or service.create_key(**key),
                    base_url=service.base_url,
                    link_base_url=service.link_base_url,
                    deadline=20,
                )
            )

        yield make


@pytest.fixture
def client(connect: Connect) -> Client:
    return connect()


def told(kind: type[SealpipeError], call: Callable[..., object], *args: Any, **options: Any) -> Any:
    """The exception of exactly this kind that a call ends in."""
    with pytest.raises(kind) as raised:
        call(*args, **options)
    assert type(raised.value) is kind
    return raised.value


def test_a_share_is_made_listed_read_and_expired(service: RunningService, client: Client) -> None:
    made = client.create_share(**SHARE, expires_at=IN_2099, views=3)
    assert (made.expires_at, made.custody, made.replayed, made.extra) == (
        IN_2099,
        "none",
        False,
        {},
    )
    again = client.create_share(**SHARE)
    page = client.list_shares()
    assert [share.short_code for share in page.items] == [again.short_code, made.short_code]
    assert (
        page.pagination.page,
        page.pagination.limit,
        page.pagination.total_pages,
        page.pagination.total,
    ) == (
        1,
        25,
        1,
        2,
    )
    shown = client.get_share(made.short_code)
    assert (shown.short_code, shown.expires_at, shown.extra) == (made.short_code, IN_2099, {})
    client.expire_share(made.short_code)
    assert [share.short_code for share in client.iter_shares(limit=1)] == [again.short_code]
    for call in (client.get_share, client.expire_share):
        error = told(NotFoundError, call, made.short_code)
        assert (error.status, error.error_code) == (404, 1)
    assert [(event.account, dict(event.payload)) for event in service.events()] == [
        ("default", {"event": "share.deleted", "short_code": made.short_code})
    ]


def test_a_create_is_sent_again_under_its_key_and_never_with_another_body(client: Client) -> None:
    first = client.create_share(**SHARE, idempotency_key="k")
    second = client.create_share(**SHARE, idempotency_key="k")
    assert (first.short_code, first.replayed, second.replayed) == (second.short_code, False, True)
    error = told(
        IdempotencyConflictError, client.create_share, **SHARE, title="t", idempotency_key="k"
    )
    assert (error.status, error.error_code) == (409, 105)
    assert len(client.list_shares().items) == 1


def test_a_key_is_another_keys_own_and_lives_for_a_day(
    service: RunningService, connect: Connect
) -> None:
    one, two = connect(), connect()
    code = one.create_share(**SHARE, idempotency_key="k").short_code
    assert two.create_share(**SHARE, title="t", idempotency_key="k").replayed is False
    service.advance(24 * 3600 - 60)
    assert one.create_share(**SHARE, idempotency_key="k").short_code == code
    service.advance(61)
    assert one.create_share(**SHARE, title="t", idempotency_key="k").replayed is False


def sent(client: Client, **members: str) -> CreatedShare:
    """What the service says to members that `create_share` would not take."""
    body = json.dumps({"encryption_type": "e2ee-aes256-gcm", **members}).encode()
    return budget.call(shares.create(body, "a-key"), client.session.start_budget())


def test_what_is_rejected_is_named(service: RunningService, connect: Connect) -> None:
    error = told(InvalidRequestError, sent, connect(), data="", access_token="short")
    assert (error.status, error.error_code, set(error.additional_data)) == (
        400,
        19,
        {"data", "access_token"},
    )
    error = told(
        InvalidRequestError, connect(custody="none").create_share, **SHARE, item_key_wrap=WRAP
    )
    assert (error.error_code, set(error.additional_data)) == (19, {"item_key_wrap"})
    error = told(
        InvalidRequestError, connect(register=False).create_share, **SHARE, item_key_wrap=WRAP
    )
    assert error.error_code == 19
    assert sent(connect(), data="no envelope at all", access_token=TOKEN).short_code
    service.set_account(zero_knowledge_feature=False)
    assert connect().create_share(**SHARE, item_key_wrap=WRAP).custody == "failed"


def test_the_plan_error_differs_from_the_scope_error(
    service: RunningService, connect: Connect
) -> None:
    reader = connect(scopes=["shares:read", "requests:read"])
    for call in (
        reader.get_stats,
        lambda: reader.create_share(**SHARE),
        lambda: reader.expire_share("x"),
    ):
        error = told(MissingScopeError, call)
        assert (error.status, error.error_code) == (403, 78)
    service.set_account(view_protection=False, shares=1)
    writer = connect(scopes=["shares:write"])
    told(MissingScopeError, writer.list_shares)
    error = told(ViewProtectionError, writer.create_share, **SHARE, passcode_verifier=TOKEN)
    assert (error.status, error.error_code) == (403, 53)
    writer.create_share(**SHARE)
    error = told(QuotaExceededError, writer.create_share, **SHARE)
    assert (error.status, error.error_code) == (403, 61)


def test_a_credential_that_is_not_usable_is_refused(
    service: RunningService, connect: Connect
) -> None:
    credential = service.create_key()
    client = connect(credential)
    assert client.list_shares().items == ()
    service.set_account(plan="none")
    assert told(AuthenticationError, client.list_shares).status == 403
    service.set_account(plan="business")
    service.revoke_key(credential)
    error = told(AuthenticationError, client.list_shares)
    assert (error.status, error.error_code) == (403, None)
    key_id, auth, custody = service.create_key().reveal().split(".")
    wrong = Secret(f"{key_id}.{exchanged(auth)}.{custody}")
    assert told(AuthenticationError, connect(wrong).list_shares).status == 403


def test_the_rate_limit_error_has_the_time_to_wait(
    service: RunningService, connect: Connect
) -> None:
    service.set_account(requests_per_minute=1)
    client, other = connect(), connect()
    for _ in range(2):
        client.list_shares()
    error = told(RateLimitError, client.list_shares)
    assert (error.status, error.error_code) == (429, 107)
    assert 58 <= error.retry_after <= 60
    assert other.list_shares().items == ()
    service.advance(60)
    assert connect(client_key(service)).list_shares().items == ()


def client_key(service: RunningService) -> Secret:
    """A key of an account whose rate is the plan's."""
    return service.create_key(account="another")


@pytest.mark.usefixtures("extended")
def test_a_request_lives_expires_and_is_gone(service: RunningService, client: Client) -> None:
    made = client.create_request(**REQUEST, expires_at=IN_2099)
    assert (made.expires_at, made.public_key, made.replayed) == (IN_2099, PUBLIC_KEY, False)
    default = client.create_request(**REQUEST)
    assert default.expires_at is not None
    assert abs(default.expires_at - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=5)
    assert [item.short_code for item in client.iter_requests()] == [
        default.short_code,
        made.short_code,
    ]
    code = made.short_code
    people = service.submitter()
    for typed in ("one", "two"):
        people.submit(f"{service.link_base_url}/r/{code}", {"Password": typed})
    people.send(f"{service.link_base_url}/r/{code}", "AAAA", encryption_type="server-side")
    for _ in range(2):
        shown = client.get_request(code)
        assert (shown.expires_at, shown.public_key) == (IN_2099, PUBLIC_KEY)
    found = client.list_submissions(code)
    assert (found.count, found.skipped) == (2, 1)
    values = [fields.load(sealed_box.open(PAIR, item.data or ""))[0].value for item in found.items]
    assert values == ["one", "two"]
    assert client.delete_request(code).outcome == "expired"
    shown = client.get_request(code)
    assert (shown.short_code, shown.expires_at, shown.public_key) == (code, None, None)
    assert [item.short_code for item in client.list_requests(status="expired").items] == [code]
    assert [item.short_code for item in client.list_requests().items] == [default.short_code]
    assert client.list_submissions(code).count == 2
    assert client.delete_request(code).outcome == "deleted"
    for call in (client.delete_request, client.get_request, client.list_submissions):
        error = told(NotFoundError, call, code)
        assert (error.status, error.error_code) == (404, 70)


def test_a_request_ends_after_thirty_days_and_takes_what_it_may(
    service: RunningService, client: Client
) -> None:
    made = client.create_request(**REQUEST, max_submissions=1, views=2, passcode="pc")
    link = f"{service.link_base_url}/r/{made.short_code}"
    people = service.submitter()
    with pytest.raises(LinkRefusedError, match="passcode"):
        people.submit(link, {})
    people.submit(link, {}, passcode="pc")
    with pytest.raises(LinkRefusedError) as full:
        people.submit(link, {}, passcode="pc")
    assert full.value.reason == "full"
    service.advance(30 * 24 * 3600 + 60)
    assert client.list_requests().items == ()
    assert client.delete_request(made.short_code).outcome == "deleted"


def test_many_pages_are_walked_once(service: RunningService, client: Client) -> None:
    service.set_account(requests_per_minute=1000)
    codes = [client.create_share(**SHARE).short_code for _ in range(103)]
    assert [share.short_code for share in client.iter_shares()] == codes[::-1]
    page = client.list_shares(page=5)
    assert (len(page.items), page.pagination.total_pages, page.pagination.total) == (3, 5, 103)
    assert client.list_shares(limit=100).pagination.limit == 100


def test_anothers_items_are_not_there(connect: Connect) -> None:
    mine, theirs = connect(account="mine"), connect(account="theirs")
    share, request = (
        theirs.create_share(**SHARE).short_code,
        theirs.create_request(**REQUEST).short_code,
    )
    for call, code, number in (
        (mine.get_share, share, 1),
        (mine.expire_share, share, 1),
        (mine.get_request, request, 70),
        (mine.list_submissions, request, 70),
        (mine.delete_request, request, 70),
    ):
        assert told(NotFoundError, call, code).error_code == number
    assert mine.list_shares().items == mine.list_requests().items == ()
    assert (theirs.get_share(share).short_code, theirs.get_request(request).public_key) == (
        share,
        PUBLIC_KEY,
    )


def test_stats_count_what_recipients_saw(service: RunningService, client: Client) -> None:
    share = client.share([fields.Field("Password", "p")], views=2)
    client.create_share(**SHARE)
    for _ in range(2):
        service.recipient().open_link(share.link)
    with pytest.raises(LinkRefusedError) as spent:
        service.recipient().open_link(share.link)
    assert spent.value.reason == "views"
    service.advance(24 * 3600)
    stats = client.get_stats()
    assert (stats.active, stats.expired, stats.total_viewed) == (1, 1, 2)
    days = [day.day for day in stats.daily_views if day.day is not None]
    assert days == sorted(days)
    assert [views for _, views in stats.daily_views] == [0] * 12 + [2, 0]


def test_five_wrong_passcodes_end_a_share(service: RunningService, client: Client) -> None:
    share = client.share([fields.Field("Password", "p")], passcode="right", views=1)
    reasons = []
    for passcode in ("w", "w", "w", "w", "w", "right"):
        with pytest.raises(LinkRefusedError) as kept_out:
            service.recipient().open_link(share.link, passcode)
        reasons.append(kept_out.value.reason)
    assert reasons == ["passcode-wrong"] * 5 + ["attempts"]
    assert client.list_shares().items == ()


def test_time_ends_a_share_for_everybody(service: RunningService, client: Client) -> None:
    share = client.share([fields.Field("Password", "p")], expires_in=timedelta(hours=1))
    service.advance(3600)
    assert client.list_shares().items == ()
    with pytest.raises(LinkRefusedError) as ended:
        service.recipient().open_link(share.link)
    assert ended.value.reason == "time"
    assert client.expire_share(share.short_code).outcome == "already-expired"


def test_a_service_failure_has_its_code(service: RunningService, client: Client) -> None:
    share, request = (
        client.create_share(**SHARE).short_code,
        client.create_request(**REQUEST).short_code,
    )
    service.service.failing |= {"share.expiring": 9, "requests.listing": 9, "request.ending": 1}
    error = told(OutcomeUnknownError, client.expire_share, share)
    assert (error.status, error.error_code) == (500, 42)
    error = told(RetriesExhaustedError, client.list_requests)
    assert (error.status, error.error_code) == (500, 11)
    error = told(OutcomeUnknownError, client.delete_request, request)
    assert (error.status, error.error_code) == (500, 11)


NEEDED: dict[str, dict[str, object]] = {
    "delay": {"seconds": 0.01},
    "refuse": {"seconds": 0},
    "answer": {"status": 503},
    "error": {"status": 409, "code": 106},
}
"""Parameters of faults."""
FINAL = {
    "unauthorized": AuthenticationError,
    "redirect": ProtocolError,
    "hang": OutcomeUnknownError,
}
"""After these, nothing is sent again."""


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"drip-head", "drip-body"}))
def test_a_share_meets_each_fault_of_the_plan_once(
    fault: str, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But those that last as long as `hang`, which would take as long."""
    monkeypatch.setattr(Budget, "draw_backoff", lambda *_: 0.05)
    service.set_faults({"fault": fault, **NEEDED.get(fault, {})})
    addresses = {"base_url": service.base_url, "link_base_url": service.link_base_url}
    with Client(
        api_key=service.create_key(), deadline=3 if fault == "hang" else 20, **addresses
    ) as client:
        if fault in FINAL:
            told(FINAL[fault], client.create_share, **SHARE)
        else:
            client.create_share(**SHARE)
        assert [progress.applied for progress in service.faults()] == [1]
        assert len(client.list_shares().items) == (fault not in FINAL)


def test_a_team_works_on_one_set_of_shares(service: RunningService, connect: Connect) -> None:
    alice, bob = (
        connect(account="alice", organization="team"),
        connect(account="bob", organization="team"),
    )
    alone = connect(account="alice")
    code = alice.create_share(**SHARE).short_code
    told(NotFoundError, alone.get_share, code)
    bob.expire_share(code)
    assert [event.account for event in service.events()] == ["alice"]
    service.set_account("alice", plan="none")
    assert alice.list_shares().items == ()
    told(AuthenticationError, alone.list_shares)
