"""The published `credenshare` client, unchanged, against the service run with its tag; and people's links."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import credenshare  # type: ignore[import-untyped]  # it ships no types
import pytest

from rehearsal.callers import Api
from sealpipe.errors import FragmentError
from sealpipe_rehearsal.people import NotOpened
from sealpipe_rehearsal.running import Running
from sealpipe_rehearsal.server import start

FIELDS = [{"key": "Password", "value": "s3cret \u00e4\U0001f511", "type": "password"}]


@pytest.fixture(scope="module")
def crs_service() -> Iterator[Running]:
    with start(service_tag="crs") as running:
        yield running


@pytest.fixture
def running(crs_service: Running) -> Running:
    crs_service.reset()
    return crs_service


@pytest.fixture
def client(running: Running) -> Iterator[credenshare.CredenShare]:
    with connect(running) as made:
        yield made


def connect(running: Running, **key: object) -> credenshare.CredenShare:
    credential = running.create_key(**key)  # type: ignore[arg-type]  # handed on
    return credenshare.CredenShare(credential.reveal(), base_url=running.base_url, link_origin=running.link_base_url)


def test_it_creates_and_the_recipient_reads(running: Running, client: credenshare.CredenShare) -> None:
    share = client.shares.create(title="DB", fields=FIELDS, access_counts_left=1)
    assert share.custody == "none"
    (field,) = running.recipient().open_link(share.link)
    assert (field.key, field.value, field.type) == ("Password", "s3cret \u00e4\U0001f511", "password")
    with pytest.raises(NotOpened) as ended:
        running.recipient().open_link(share.link)
    assert ended.value.reason == "views"


def test_it_sends_every_optional_member(running: Running, client: credenshare.CredenShare) -> None:
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
    people = running.recipient()
    assert people.look(share.link)["passcode_required"] is True
    with pytest.raises(NotOpened) as wanted:
        people.open_link(share.link)
    assert (wanted.value.reason, wanted.value.attempts_left) == ("passcode-required", None)
    with pytest.raises(NotOpened) as wrong:
        people.open_link(share.link, "wrong horse")
    assert (wrong.value.reason, wrong.value.attempts_left) == ("passcode-wrong", 4)
    assert people.open_link(share.link, "correct horse")[0].value == FIELDS[0]["value"]


def test_it_walks_more_than_a_hundred_shares(running: Running, client: credenshare.CredenShare) -> None:
    running.set_account(requests_per_minute=1000)
    codes = [client.shares.create(title=str(n), fields=FIELDS).short_code for n in range(230)]
    assert [share.short_code for share in client.shares.iter_all()] == codes[::-1]
    page = client.shares.list()
    assert (len(page), page.total, page.total_pages, page.has_more) == (25, 230, 10, True)


def test_it_gets_and_expires(client: credenshare.CredenShare) -> None:
    code = client.shares.create(title="t", fields=FIELDS).short_code
    assert client.shares.get(code).short_code == code
    client.shares.expire(code)
    for call in (client.shares.get, client.shares.expire):
        with pytest.raises(credenshare.NotFoundError) as gone:
            call(code)
        assert gone.value.code == 1
    assert [share.short_code for share in client.shares.list(status="expired")] == [code]


def test_it_meets_the_conflict_of_an_idempotency_key(client: credenshare.CredenShare) -> None:
    client.shares.create(title="t", fields=FIELDS, idempotency_key="same")
    with pytest.raises(credenshare.IdempotencyConflictError) as conflict:
        client.shares.create(title="t", fields=FIELDS, idempotency_key="same")
    assert conflict.value.code == 105


def test_it_meets_a_missing_scope_a_refused_wrap_and_a_revoked_key(running: Running) -> None:
    with connect(running, scopes=["shares:read"]) as reader:
        with pytest.raises(credenshare.PermissionError_) as scope:
            reader.shares.create(title="t", fields=FIELDS)
        assert scope.value.code == 78
    with connect(running, custody="none") as bare:
        with pytest.raises(credenshare.ApiError) as wrap:
            bare.shares.create(title="t", fields=FIELDS, custody=True)
        assert (wrap.value.status, wrap.value.code) == (400, 19)
    credential = running.create_key()
    running.revoke_key(credential)
    with (
        credenshare.CredenShare(credential.reveal(), base_url=running.base_url) as refused,
        pytest.raises(credenshare.PermissionError_) as revoked,
    ):
        refused.shares.list()
    assert (revoked.value.status, revoked.value.code) == (403, None)


@pytest.mark.spec("rules.key-never-sent", "credential.custody-nowhere", "credential.only-two")
def test_the_service_saw_neither_plaintext_nor_key_nor_custody_secret(running: Running) -> None:
    credential = running.create_key()
    custody_secret = credential.reveal().rpartition(".")[2]
    with credenshare.CredenShare(
        credential.reveal(), base_url=running.base_url, link_origin=running.link_base_url
    ) as client:
        share = client.shares.create(title="t", fields=FIELDS, passcode="correct horse", custody=True)
    running.recipient().open_link(share.link, "correct horse")
    seen = b"".join(bytes(request) for request in running.seen())
    assert share.short_code.encode() in seen
    for hidden in ("s3cret", "correct horse", custody_secret, share.link.partition("#1")[2]):
        assert hidden.encode() not in seen


@pytest.mark.parametrize(("cut", "reason"), [("", "missing-key"), ("#", "missing-key"), ("#1abc", "malformed-key")])
def test_a_recipient_with_half_a_link_spends_nothing(
    service: Running, caller: Callable[..., Api], cut: str, reason: str
) -> None:
    code = caller(service).created(access_counts_left=1)
    with pytest.raises(FragmentError) as half:
        service.recipient().open_link(f"{service.link_base_url}/{code}{cut}")
    assert half.value.reason == reason
    assert service.recipient().look(f"{service.link_base_url}/{code}")["short_code"] == code


def test_a_link_to_nothing_is_not_found(service: Running) -> None:
    with pytest.raises(NotOpened) as nothing:
        service.recipient().open_link(f"{service.link_base_url}/unknown#1{'A' * 43}")
    assert nothing.value.reason == "not-found"
