"""The one re-creation there is (a key without custody), and custody that is required and cannot be
had.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sealpipe import Client, Field, errors
from support import faults
from support.faults import envelope
from support.faulty import Exchange, Fault, Faulty, Received, passes, same_bytes
from support.job import Job

NO_CUSTODY = envelope(400, 19, data={"item_key_wrap": "is not accepted from this key"})


def without_wrap(body: bytes) -> bytes:
    """The body as it must look without its wrap: cut out of the text, everything else as it was."""
    wrap = json.loads(body)["item_key_wrap"]
    return body.replace(f',"item_key_wrap":"{wrap}"'.encode(), b"")


def assert_fell_back(first: Received, second: Received) -> None:
    assert second.body == without_wrap(first.body)
    assert second.body != first.body
    assert first.header("idempotency-key") != second.header("idempotency-key")
    assert first.header("authorization") == second.header("authorization")


def test_a_key_without_custody_gets_its_share_without_a_wrap_under_a_new_key_and_a_warning(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server, custody="none")
    done = job.share()
    assert done.code == 0, done
    assert_fell_back(*server.received())
    assert "without a wrap" in done.err
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_a_key_whose_custody_key_is_not_registered_yet_falls_back_too(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server, custody="self", register=False)
    done = job.share("--output", "json")
    assert done.code == 0, done
    assert_fell_back(*server.received())
    assert done.json["custody"] == "none"


def test_a_second_refusal_is_final(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=NO_CUSTODY)
    job = job_at(server)
    done = job.share()
    assert (done.code, done.out) == (5, "")
    assert_fell_back(*server.received())
    assert job.left() == []


@pytest.mark.parametrize(
    "refusal",
    [
        envelope(400, 19, data={"title": "is too long"}),
        envelope(400, 19),
        envelope(409, 105, data={"item_key_wrap": "is not accepted from this key"}),
        envelope(403, 53, data={"item_key_wrap": "is not accepted from this key"}),
    ],
    ids=["19 naming another member", "19 naming none", "105", "53"],
)
def test_no_other_refusal_makes_a_second_share(
    refusal: Fault, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=refusal)
    job = job_at(server)
    assert job.share().code in (4, 5, 8)
    assert len(server.received()) == 1
    assert job.left() == []


def test_required_custody_is_refused_without_a_second_try(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server, custody="none")
    done = job.share("--custody", "require")
    assert (done.code, done.out) == (5, "")
    assert "item_key_wrap" in done.err
    assert len(server.received()) == 1
    assert job.shares() == []
    assert job.left() == []


def test_custody_off_sends_no_wrap_at_all(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server, custody="none")
    done = job.share("--custody", "off")
    assert done.code == 0
    (request,) = server.received()
    assert "item_key_wrap" not in json.loads(request.body)
    assert "without a wrap" not in done.err


def test_the_second_share_is_resumed_under_its_own_key_when_its_answer_is_lost(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(passes, faults.reset_after, faults.reset_after, then=faults.unauthorized)
    job = job_at(server, custody="none")
    done = job.share()
    assert (done.code, done.out) == (9, "")
    assert len(job.entries()) == 1
    server.mend()
    done = job.resume()
    assert done.code == 0
    first, *later = server.received()
    assert_fell_back(first, later[0])
    assert len(later) >= 3
    assert same_bytes(later)
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_the_first_answer_may_be_lost_and_the_fallback_happens_in_resume(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_before, then=faults.unauthorized)
    job = job_at(server, custody="none")
    assert job.share().code == 9
    lost = len(server.received())
    server.mend()
    done = job.resume()
    assert done.code == 0
    requests = server.received()
    assert same_bytes(requests[: lost + 1])
    assert_fell_back(*requests[lost:])
    assert job.opens(done.out)
    assert len(job.shares()) == 1


def test_failed_custody_is_reported_and_the_share_is_created(job: Job) -> None:
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    done = job.share("--output", "json")
    assert done.code == 0
    assert done.json["custody"] == "failed"
    assert job.opens(done.json["link"])


def test_failed_custody_is_reported_in_text_with_a_remedy(job: Job) -> None:
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    done = job.share()
    (code,) = job.shares()
    assert done.code == 0
    assert job.opens(done.out)
    assert "custody failed: " in done.err
    assert "the owner cannot read this share later" in done.err
    assert f"`sealpipe shares expire -- {code}`, and share again with --custody require" in done.err


def test_required_custody_that_fails_expires_the_share_again(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    done = job.share("--custody", "require")
    assert (done.code, done.out) == (4, "")
    assert [request.method for request in server.received()] == ["POST", "DELETE"]
    assert len(job.shares()) == 1
    assert job.live_shares() == []
    assert job.left() == []


def test_required_custody_that_is_stored_is_a_share_like_any_other(job: Job) -> None:
    done = job.share("--custody", "require", "--output", "json")
    assert done.code == 0
    assert done.json["custody"] == "stored"
    assert job.opens(done.json["link"])


@pytest.mark.parametrize(
    "fault",
    [
        faults.reset_before,
        faults.reset_after,
        faults.half_body,
        envelope(500, 42),
        envelope(500, 42, commits=True),
        envelope(429, 107),
    ],
    ids=["reset before", "reset after", "half body", "500/42", "500/42 after", "429"],
)
def test_taking_the_share_back_survives_a_fault(
    fault: Fault, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(passes, fault)
    job = job_at(server)
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    done = job.share("--custody", "require")
    assert (done.code, done.out) == (4, "")
    assert job.live_shares() == []
    assert job.left() == []


@pytest.mark.parametrize(
    ("fault", "live"),
    [
        (faults.reset_before, 1),
        (faults.reset_after, 0),
        (envelope(500, 42), 1),
        (envelope(429, 107), 1),
        (faults.unauthorized, 1),
        (envelope(403, 78), 1),
        (None, 1),
    ],
    ids=["reset before", "reset after", "500/42", "429", "401", "403/78", "refused"],
)
def test_a_share_that_could_not_be_taken_back_is_kept_in_the_outbox_until_it_is(
    fault: Fault | None,
    live: int,
    proxied: Callable[..., Faulty],
    job_at: Callable[..., Job],
) -> None:
    """The share exists and was not to exist: no refusal of the DELETE, however clear, may say that
    nothing is left.
    """

    def made_and_then_refused(exchange: Exchange) -> None:
        answer = exchange.forward()
        exchange.server.refuse()
        exchange.send(answer.head + answer.body)
        exchange.close()

    server = proxied(passes, then=fault) if fault else proxied(made_and_then_refused)
    job = job_at(server)
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    done = job.share("--custody", "require", "--deadline", "6s")
    assert (done.code, done.out) == (9, ""), done
    assert len(job.live_shares()) == live
    (entry,) = job.entries()
    assert f"sealpipe resume {entry}" in done.err
    server.mend()
    done = job.resume()
    # What was wanted is refused, as it would have been without the fault.
    assert (done.code, done.out) == (4, ""), done
    assert len(job.shares()) == 1
    assert job.live_shares() == []
    assert job.left() == []


def test_the_clients_raise_what_the_command_line_tells(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    with Client(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        with pytest.raises(errors.CustodyError):
            client.share([Field("DB_PASSWORD", job.secret)], custody="require")
        share = client.share([Field("DB_PASSWORD", job.secret)])
    assert share.custody == "failed"
    assert "custody failed" in share.warnings[0]
    assert len(job.live_shares()) == 1
