"""What the published `credenshare` client does, unchanged, with any service: the tests are those of
the files that import them, each with a fixture `service` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import credenshare  # type: ignore[import-untyped]  # it ships no types
import pytest

from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService

__all__ = [
    "FIELDS",
    "client",
    "test_a_link_to_nothing_is_not_found",
    "test_a_request_made_again_from_the_same_seed_is_the_same_one",
    "test_a_request_that_time_ends_is_deleted_by_one_delete",
    "test_it_asks_for_a_secret_and_opens_what_was_sent",
    "test_it_creates_and_the_recipient_reads",
    "test_it_gets_a_retry_after",
    "test_it_gets_and_expires",
    "test_it_leaves_out_a_type_and_the_prompt_is_text",
    "test_it_lists_gets_and_deletes_a_request_twice",
    "test_it_meets_a_missing_scope_a_refused_wrap_and_a_revoked_key",
    "test_it_meets_the_conflict_of_an_idempotency_key",
    "test_it_meets_the_end_of_its_allowance",
    "test_it_reads_the_figures",
    "test_it_sends_every_optional_member",
    "test_it_walks_more_than_a_hundred_shares",
    "test_what_is_not_sealed_is_counted_and_kept_back",
]

FIELDS = [{"key": "Password", "value": "s3cret \u00e4\U0001f511", "type": "password"}]
PROMPTS = [{"item": "Token", "type": "password"}, {"item": "Note", "type": "multiline"}]


@pytest.fixture
def client(service: RunningService) -> Iterator[credenshare.CredenShare]:
    with connect(service) as made:
        yield made


def connect(service: RunningService, **key: object) -> credenshare.CredenShare:
    credential = service.create_key(**key)  # type: ignore[arg-type]  # handed on
    return credenshare.CredenShare(
        credential.reveal(), base_url=service.base_url, link_origin=service.link_base_url
    )


def test_it_creates_and_the_recipient_reads(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    share = client.shares.create(title="DB", fields=FIELDS, access_counts_left=1)
    assert share.custody == "none"
    (field,) = service.recipient().open_link(share.link)
    assert (field.key, field.value, field.type) == (
        "Password",
        "s3cret \u00e4\U0001f511",
        "password",
    )
    with pytest.raises(LinkRefusedError) as ended:
        service.recipient().open_link(share.link)
    assert ended.value.reason == "views"


@pytest.mark.usefixtures("extended")
def test_it_sends_every_optional_member(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    share = client.shares.create(
        title="DB",
        fields=FIELDS,
        description="d",
        passcode="correct horse",
        expired_at="2099-01-01T00:00:00Z",
        access_counts_left=3,
        timed_view=60,
        custody=True,
        organization_id="org",
        notify_on=["viewed", "denied"],
    )
    assert (share.custody, share.expired_at) == ("stored", "2099-01-01T00:00:00Z")
    people = service.recipient()
    assert people.look(share.link)["passcode_required"] is True
    with pytest.raises(LinkRefusedError) as wanted:
        people.open_link(share.link)
    assert (wanted.value.reason, wanted.value.attempts_left) == ("passcode-required", None)
    with pytest.raises(LinkRefusedError) as wrong:
        people.open_link(share.link, "wrong horse")
    assert (wrong.value.reason, wrong.value.attempts_left) == ("passcode-wrong", 4)
    assert people.open_link(share.link, "correct horse")[0].value == FIELDS[0]["value"]


def test_it_walks_more_than_a_hundred_shares(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    service.set_account(requests_per_minute=1000)
    codes = [client.shares.create(title=str(n), fields=FIELDS).short_code for n in range(230)]
    assert [share.short_code for share in client.shares.iter_all()] == codes[::-1]
    page = client.shares.list()
    assert (len(page), page.total, page.total_pages, page.has_more) == (25, 230, 10, True)


@pytest.mark.usefixtures("extended")
def test_it_gets_and_expires(client: credenshare.CredenShare) -> None:
    code = client.shares.create(title="t", fields=FIELDS).short_code
    assert client.shares.get(code).short_code == code
    client.shares.expire(code)
    for call in (client.shares.get, client.shares.expire):
        with pytest.raises(credenshare.NotFoundError) as gone:
            call(code)
        assert gone.value.code == 1
    assert [share.short_code for share in client.shares.list(status="expired")] == [code]


def test_it_leaves_out_a_type_and_the_prompt_is_text(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    request = client.requests.create(title="Tokens", fields=[{"item": "Token"}])
    assert service.submitter().open_form(request.collect_link)["fields"] == [
        {"item": "Token", "type": "text"}
    ]


def test_it_asks_for_a_secret_and_opens_what_was_sent(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    request = client.requests.create(
        title="Tokens", fields=PROMPTS, passcode="knock", max_submission=2
    )
    assert request.collect_link == f"{service.link_base_url}/r/{request.short_code}"
    people = service.submitter()
    with pytest.raises(LinkRefusedError, match="passcode"):
        people.submit(request.collect_link, {"Token": "t0"}, tag="crs")
    sent = [
        people.submit(
            request.collect_link,
            {"Token": f"t{number}\u00e4", "Note": "a\nb"},
            tag="crs",
            passcode="knock",
        )
        for number in (1, 2)
    ]
    with pytest.raises(LinkRefusedError) as full:
        people.submit(request.collect_link, {"Token": "t3"}, tag="crs", passcode="knock")
    assert full.value.reason == "full"

    page = client.requests.submissions(request.short_code)
    assert (page.count, len(page), page.skipped_not_end_to_end_encrypted) == (2, 2, 0)
    assert [
        each.short_code for each in client.requests.iter_submissions(request.short_code)
    ] == sent
    for number, submission in enumerate(page, 1):
        assert submission.encryption_type == "e2ee-aes256-gcm"
        assert submission.decrypt(request.seed) == [
            {"key": "Token", "value": f"t{number}\u00e4", "type": "password"},
            {"key": "Note", "value": "a\nb", "type": "multiline"},
        ]


def test_what_is_not_sealed_is_counted_and_kept_back(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    request = client.requests.create(title="Tokens", fields=PROMPTS)
    service.submitter().send(request.collect_link, "AAAA", encryption_type="none")
    page = client.requests.submissions(request.short_code)
    assert (page.count, len(page), page.skipped_not_end_to_end_encrypted) == (0, 0, 1)


@pytest.mark.usefixtures("extended")
def test_it_lists_gets_and_deletes_a_request_twice(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    made = [
        client.requests.create(title=str(n), fields=PROMPTS, expired_at="2099-01-01T00:00:00Z")
        for n in range(3)
    ]
    kept, gone = made[1], made[2]
    assert [each.short_code for each in client.requests.iter_all(limit=2)] == [
        each.short_code for each in made[::-1]
    ]
    active = client.requests.get(gone.short_code)
    assert (active.expired_at, active.public_key) == ("2099-01-01T00:00:00Z", gone.public_key)
    service.submitter().submit(gone.collect_link, {"Token": "t"}, tag="crs")

    assert client.requests.delete(gone.short_code).outcome == "expired"
    expired = client.requests.get(gone.short_code)
    assert (expired.short_code, expired.expired_at, expired.public_key) == (
        gone.short_code,
        None,
        None,
    )
    (still,) = client.requests.submissions(gone.short_code)
    assert still.decrypt(gone.seed)[0]["value"] == "t"
    assert [each.short_code for each in client.requests.list(status="expired")] == [gone.short_code]
    with pytest.raises(LinkRefusedError) as closed:
        service.submitter().submit(gone.collect_link, {"Token": "t"}, tag="crs")
    assert closed.value.reason == "expired"

    assert client.requests.delete(gone.short_code).outcome == "deleted"
    for call in (client.requests.get, client.requests.submissions, client.requests.delete):
        with pytest.raises(credenshare.NotFoundError) as nothing:
            call(gone.short_code)
        assert nothing.value.code == 70
    assert client.requests.list().total == 2
    assert client.requests.get(kept.short_code).public_key == kept.public_key


def test_a_request_that_time_ends_is_deleted_by_one_delete(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    request = client.requests.create(title="Tokens", fields=PROMPTS)
    service.advance(30 * 24 * 60 * 60)
    assert client.requests.get(request.short_code).public_key is None
    assert client.requests.delete(request.short_code).outcome == "deleted"


def test_it_reads_the_figures(service: RunningService, client: credenshare.CredenShare) -> None:
    shares = [client.shares.create(title="t", fields=FIELDS) for _ in range(3)]
    service.recipient().open_link(shares[0].link)
    service.advance(24 * 60 * 60)
    for _ in range(2):
        service.recipient().open_link(shares[1].link)
    client.shares.expire(shares[2].short_code)
    stats = client.stats.get()
    assert (stats.shares.active, stats.shares.expired, stats.shares.total_viewed) == (2, 1, 3)
    assert len(stats.daily_views) == 14
    assert [day.count for day in stats.daily_views[-3:]] == [0, 1, 2]
    assert stats.daily_views[-1].date == service.service.clock.now().date().isoformat()


def test_it_gets_a_retry_after(service: RunningService, client: credenshare.CredenShare) -> None:
    service.set_account(requests_per_minute=1)
    for _ in range(2):  # the burst is twice the rate
        client.shares.list()
    with pytest.raises(credenshare.RateLimitError) as limited:
        client.shares.list()
    assert (limited.value.status, limited.value.code) == (429, 107)
    assert 1 <= limited.value.retry_after <= 60
    service.advance(limited.value.retry_after)
    client.shares.list()


def test_it_meets_the_conflict_of_an_idempotency_key(client: credenshare.CredenShare) -> None:
    for create, fields in ((client.shares.create, FIELDS), (client.requests.create, PROMPTS)):
        key = f"the same for {len(fields)} fields"
        create(title="t", fields=fields, idempotency_key=key)
        with pytest.raises(credenshare.IdempotencyConflictError) as conflict:
            create(title="t", fields=fields, idempotency_key=key)
        assert conflict.value.code == 105


def test_a_request_made_again_from_the_same_seed_is_the_same_one(
    client: credenshare.CredenShare,
) -> None:
    made = [
        client.requests.create(
            title="t", fields=PROMPTS, seed=bytes(31) + b"1", idempotency_key="k"
        )
        for _ in "ab"
    ]
    assert made[0].short_code == made[1].short_code
    assert client.requests.list().total == 1


def test_it_meets_the_end_of_its_allowance(
    service: RunningService, client: credenshare.CredenShare
) -> None:
    service.set_account(shares=1)
    client.shares.create(title="t", fields=FIELDS)
    with pytest.raises(credenshare.QuotaExceededError) as used_up:
        client.shares.create(title="t", fields=FIELDS)
    assert (used_up.value.status, used_up.value.code) == (403, 61)


def test_it_meets_a_missing_scope_a_refused_wrap_and_a_revoked_key(service: RunningService) -> None:
    with connect(service, scopes=["shares:read"]) as reader:
        with pytest.raises(credenshare.PermissionError_) as scope:
            reader.shares.create(title="t", fields=FIELDS)
        assert scope.value.code == 78
    with connect(service, custody="none") as bare:
        with pytest.raises(credenshare.ApiError) as wrap:
            bare.shares.create(title="t", fields=FIELDS, custody=True)
        assert (wrap.value.status, wrap.value.code) == (400, 19)
    credential = service.create_key()
    service.revoke_key(credential)
    with (
        credenshare.CredenShare(credential.reveal(), base_url=service.base_url) as refused,
        pytest.raises(credenshare.PermissionError_) as revoked,
    ):
        refused.shares.list()
    assert (revoked.value.status, revoked.value.code) == (403, None)


def test_a_link_to_nothing_is_not_found(service: RunningService) -> None:
    with pytest.raises(LinkRefusedError) as nothing:
        service.recipient().open_link(f"{service.link_base_url}/unknown#1{'A' * 43}")
    assert nothing.value.reason == "not-found"
