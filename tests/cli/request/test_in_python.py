"""`client.request`, and a task that is cancelled while its request is being made."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.request.seen import ANSWERS, answer, codes, creates, custody_pair, read
from sealpipe import AsyncClient, DeliveryError, Secret, UsageError
from sealpipe.api.operation import Credential
from sealpipe.prompts import Prompt
from sealpipe.state.entry import Entry
from sealpipe.state.outbox import Outbox
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from sealpipe_rehearsal.people import LinkRefusedError
from support import faults
from support.fake_web import Receiver
from support.faulty import Faulty
from support.job import PAIR, Caller, Job

PROMPTS = ("Staging password", Prompt("user", "User name", "text"))


def test_a_request_tells_all_that_there_is_to_know_and_writes_nothing(
    job: Job, call: Caller
) -> None:
    made = call("request", PROMPTS)
    (code,) = codes(job)
    assert made.collect_link == f"{job.service.link_base_url}/r/{code}"
    assert (made.short_code, made.outcome, made.key, made.seed) == (
        code,
        "created",
        "credential",
        None,
    )
    assert made.public_key == encode_base64url(custody_pair(job.api_key).public_key)
    assert made.title == "Staging password, User name"
    assert [each.id for each in made.prompts] == ["staging_password", "user"]
    assert made.receipt.prompts == made.prompts
    assert made.access_link is None
    assert made.link.reveal() == made.collect_link
    answer(job, made.collect_link)
    assert read(job, code, custody_pair(job.api_key)) == [ANSWERS]
    assert job.left() == []


def test_a_fresh_key_comes_with_its_access_link_which_nothing_shows(job: Job, call: Caller) -> None:
    made = call("request", PROMPTS, key="new")
    link = made.access_link.reveal()
    base, _, fragment = link.partition("#1")
    assert base == made.collect_link
    pair = keys.from_seed(decode_base64url(fragment))
    assert encode_base64url(pair.public_key) == made.public_key
    answer(job, made.collect_link)
    assert read(job, made.short_code, pair) == [ANSWERS]
    assert fragment not in (
        f"{made!r} {made.receipt!r} {made.receipt.dump()} {dataclasses.astuple(made.receipt)}"
    )


def test_what_only_the_library_can_ask_for_is_asked_for(job: Job, call: Caller) -> None:
    ends = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0)
    made = call(
        "request", PROMPTS, expires_at=ends, views=1, requires_login=True, requires_mfa=True
    )
    assert made.expires_at == ends
    with pytest.raises(LinkRefusedError) as refused:
        answer(job, made.collect_link, signed_in_as="kim@acme.example")
    assert refused.value.reason == "mfa"
    answer(job, made.collect_link, signed_in_as="kim@acme.example", mfa=True)
    with pytest.raises(LinkRefusedError) as spent:
        answer(job, made.collect_link, signed_in_as="kim@acme.example", mfa=True)
    assert spent.value.reason == "accesses"


@pytest.mark.parametrize("passcode", ["open sesame", Secret("open sesame")], ids=["text", "Secret"])
def test_a_passcode_may_be_given_and_is_said_to_be_sent(
    job: Job, call: Caller, passcode: str | Secret
) -> None:
    made = call("request", PROMPTS, passcode=passcode)
    assert made.remarks == (
        "the passcode was sent to the service: it gates the form, and encrypts nothing",
    )
    assert "sesame" not in repr(made)
    answer(job, made.collect_link, passcode="open sesame")


@pytest.mark.parametrize(
    ("prompts", "options", "says"),
    [
        ([], {}, "has no prompts"),
        (["a", "a"], {}, "two prompts"),
        ([Prompt("x", "a"), Prompt("x", "b")], {}, "two prompts have the id"),
        ([Prompt("0", "a")], {}, "does not give a valid id"),
        ([Prompt("x", "a", "secret")], {}, "is not a field type"),
        (
            PROMPTS,
            {"expires_at": datetime(2099, 1, 1)},
            "expires_at is not a datetime with a time zone",
        ),
        (PROMPTS, {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "in the past"),
        (PROMPTS, {"max_submissions": 0}, "max_submissions is not a whole number from 1"),
        (PROMPTS, {"views": -1}, "views is not a whole number from 1"),
        (PROMPTS, {"passcode": ""}, "passcode is empty"),
        (PROMPTS, {"key": "custody"}, "neither the credential's nor a new one"),
        (PROMPTS, {"key": "given"}, "neither the credential's nor a new one"),
        (PROMPTS, {"key": PAIR, "seed_to": "file:seed"}, "stores the seed of a new key"),
        (PROMPTS, {"seed_to": "file:seed"}, "stores the seed of a new key"),
        (
            PROMPTS,
            {"restricted_domains": "acme.example"},
            "restricted_domains is not a list of texts",
        ),
        (PROMPTS, {"ip_whitelist": ["fe80::1%eth0"]}, "is not an IP address"),
        (PROMPTS, {"params": {"x": "text:y"}, "send": ["file:a"]}, "no channel uses --param"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    job: Job, call: Caller, prompts: Any, options: dict[str, Any], says: str
) -> None:
    before = len(job.service.seen())
    with pytest.raises(UsageError, match=says):
        call("request", prompts, **options)
    assert len(job.service.seen()) == before


def test_a_create_under_a_used_key_returns_the_same_request_as_replayed(
    job: Job, call: Caller
) -> None:
    options = {
        "title": "t",
        "public_key": PAIR.public_key,
        "fields": [("P", "password")],
        "idempotency_key": "k" * 36,
    }
    first, second = call("create_request", **options), call("create_request", **options)
    assert (first.replayed, second.replayed) == (False, True)
    assert codes(job) == [first.short_code] == [second.short_code]


def test_with_an_outbox_the_entry_ends_when_the_link_is_safe(job: Job, call: Caller) -> None:
    made = call("request", PROMPTS, outbox=job.outbox)
    assert len(job.entries()) == 1
    made.delivered()
    assert job.left() == []


def test_one_that_is_kept_is_finished_by_resume_with_the_same_link(job: Job, call: Caller) -> None:
    made = call("request", PROMPTS, outbox=job.outbox)
    made.keep()
    assert job.resume().out == f"{made.collect_link}\n"
    assert (codes(job), job.left()) == ([made.short_code], [])


def test_a_failed_delivery_error_contains_the_request(
    job: Job, call: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789")
    receiver.answers = lambda _: 403
    with pytest.raises(DeliveryError) as left:
        call("request", PROMPTS, send=[receiver.target], key="new")
    assert left.value.share.short_code == codes(job)[0]
    assert left.value.share.access_link is not None
    assert "/r/" not in left.value.message


# -- cancelled ----------------------------------------------------------------------------------


def entry_of(job: Job) -> Entry:
    (entry_id,) = job.entries()
    entry = Outbox(job.outbox, Credential.parse(job.api_key)).open(entry_id)
    assert not isinstance(entry, str)
    return entry


async def cancelled(job: Job, server: Faulty, **options: Any) -> None:
    """Start a request, cancel it once the service has it; then its answer is let go."""
    async with AsyncClient(
        api_key=job.api_key,
        base_url=server.base_url,
        link_base_url=job.service.link_base_url,
        deadline=20,
    ) as client:
        task = asyncio.ensure_future(client.request(PROMPTS, outbox=job.outbox, **options))
        assert await asyncio.to_thread(server.committed.wait, 20)
        task.cancel()
        asyncio.get_running_loop().call_later(0.2, server.released.set)
        with pytest.raises(asyncio.CancelledError):
            await task


def test_one_that_is_cancelled_between_commit_and_answer_notes_its_code(
    job: Job, proxied: Callable[..., Faulty]
) -> None:
    server = proxied(faults.holds)
    asyncio.run(cancelled(job, server))
    entry = entry_of(job)
    assert entry.response is not None
    assert [entry.response["short_code"]] == codes(job)
    entry.close()
    # The answer is known: resuming needs no service at all.
    done = job.resume(SEALPIPE_BASE_URL=server.base_url)
    assert (done.code, done.out) == (0, f"{job.service.link_base_url}/r/{codes(job)[0]}\n")
    assert len(server.received()) == 1
    assert job.left() == []


def test_nothing_new_is_sent_after_a_cancel_and_resume_makes_it(
    job: Job, proxied: Callable[..., Faulty]
) -> None:
    server = proxied(faults.holds_before)
    asyncio.run(cancelled(job, server))
    assert len(creates(server.received())) == 1
    assert codes(job) == []
    done = job.resume(SEALPIPE_BASE_URL=server.base_url)
    assert (done.code, len(codes(job)), job.left()) == (0, 1, [])


def test_a_fresh_seed_that_was_stored_before_the_cancel_belongs_to_the_request_that_resume_makes(
    job: Job, proxied: Callable[..., Faulty]
) -> None:
    seed = job.terminal.here / "seed"
    server = proxied(faults.holds_before)
    asyncio.run(cancelled(job, server, key="new", seed_to=f"file:{seed}"))
    done = job.resume(SEALPIPE_BASE_URL=server.base_url)
    assert done.code == 0
    answer(job, done.out)
    assert read(job, codes(job)[0], keys.from_seed(decode_base64url(seed.read_text()))) == [ANSWERS]
