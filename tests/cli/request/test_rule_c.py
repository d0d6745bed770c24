"""Rule C (DESIGN 6.3): answers lost to the end.

A fresh key is looked for; the credential's leaves candidates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from cli.request.seen import ANSWERS, ASK, answer, codes, creates, custody_pair, lost, read, swaps
from sealpipe.errors import OutcomeUnknownError, PublicKeyMismatchError
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from support import faults
from support.faults import envelope
from support.faulty import Exchange, Faulty, passes
from support.job import PAIR, Caller, Job, made

NEW = (*ASK, "--key", "new", "--seed-to", "file:seed", "--deadline", "30s")


def pages(server: Faulty) -> list[str]:
    return [each.target for each in server.received() if each.method == "GET"]


def crowd(job: Job, number: int) -> None:
    """More requests, each made after those before it."""
    for _ in range(number):
        made(job)


def test_with_a_fresh_key_its_own_public_key_finds_it_and_it_is_a_success(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=lost())
    job = job_at(server)
    crowd(job, 3)
    done = job.run(*NEW, "--receipt", "r.json", "--output", "json")
    assert (done.code, done.json["outcome"]) == (0, "replayed"), done
    assert done.json["short_code"] == codes(job)[0]
    assert len(codes(job)) == 4
    assert job.left() == []
    answer(job, done.json["collect_link"])
    pair = keys.from_seed(decode_base64url((job.terminal.here / "seed").read_text()))
    assert read(job, done.json["short_code"], pair) == [ANSWERS]


def test_it_is_found_on_a_later_page(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def lost_then_overtaken(exchange: Exchange) -> None:
        if exchange.received.method == "POST" and not crowded:
            exchange.forward()
            crowded.append(True)
            crowd(job, 101)
            exchange.reset()
        else:
            lost()(exchange)

    crowded: list[bool] = []
    server = proxied(then=lost_then_overtaken)
    job = job_at(server)
    job.service.set_account(job.account, plan="enterprise", requests_per_minute=100_000)
    done = job.run(
        *ASK, "--key", "new", "--seed-to", "file:seed", "--deadline", "30s", "--output", "json"
    )
    assert (done.code, done.json["outcome"]) == (0, "replayed"), done
    assert [target.partition("?")[2] for target in pages(server)] == [
        "page=1&limit=100",
        "page=2&limit=100",
    ]
    assert done.json["short_code"] == codes(job)[-1]


def test_a_fresh_key_that_is_not_in_the_list_stays_unknown_and_resume_finishes_it(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def never_arrives(exchange: Exchange) -> None:
        exchange.reset() if exchange.received.method == "POST" else passes(exchange)

    server = proxied(then=never_arrives)
    job = job_at(server)
    crowd(job, 2)
    done = job.run(*NEW)
    (entry,) = job.entries()
    assert (done.code, done.out, len(codes(job))) == (9, "", 2)
    assert f"sealpipe resume {entry}" in done.err
    assert "one of these" not in done.err
    assert pages(server)
    server.mend()
    again = job.resume(entry)
    assert (again.code, again.out, len(codes(job))) == (
        0,
        f"{job.service.link_base_url}/r/{codes(job)[0]}\n",
        3,
    )
    assert "the seed of its key is file:seed" in again.err
    assert job.left() == []


def test_with_the_credentials_key_it_ends_with_9_the_candidates_and_how_to_go_on(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=lost())
    job = job_at(server)
    older = made(job, public_key=custody_pair(job.api_key).public_key)
    other = made(job)
    done = job.run(*ASK, "--deadline", "30s", "--receipt", "r.json")
    (entry,) = job.entries()
    newest = codes(job)[0]
    assert (done.code, done.out, len(codes(job))) == (9, "", 3), done
    assert f"if it was made, it is one of these, newest first: {newest}, {older}\n" in done.err
    assert other not in done.err
    assert f"sealpipe resume {entry}" in done.err
    server.mend()
    again = job.resume(entry, "--output", "json")
    assert (again.code, again.json["short_code"], again.json["outcome"]) == (0, newest, "replayed")
    assert len(codes(job)) == 3
    assert (job.terminal.here / "r.json").exists()
    assert job.left() == []
    sent = [each for each in server.received() if each.method == "POST"]
    assert (
        len({each.body for each in sent})
        == len({each.header("idempotency-key") for each in sent})
        == 1
    )


def test_a_fresh_key_that_is_in_two_requests_tells_neither(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """Such a list is wrong, and nobody knows which of them has the link."""
    posted: list[str] = []

    def listed_twice(exchange: Exchange) -> None:
        if exchange.received.method == "POST":
            posted.append(json.loads(exchange.received.body)["public_key"])
            lost()(exchange)
            return
        rows = [
            {"short_code": code, "expired_at": None, "public_key": posted[0]}
            for code in ("one", "two")
        ]
        pagination = {"page": 1, "limit": 100, "total_pages": 1}
        faults.says(200, json.dumps({"requests": rows, "pagination": pagination}))(exchange)

    job = job_at(proxied(then=listed_twice))
    done = job.run(*NEW)
    assert (done.code, done.out) == (9, ""), done
    assert "it is one of these, newest first: one, two\n" in done.err
    assert f"sealpipe resume {job.entries()[0]}" in done.err


@pytest.mark.parametrize("words", [NEW, (*ASK, "--deadline", "30s")], ids=["new", "credential"])
def test_a_list_that_cannot_be_read_changes_nothing_about_it(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], words: tuple[str, ...]
) -> None:
    def deaf(exchange: Exchange) -> None:
        (lost() if exchange.received.method == "POST" else envelope(403, 78))(exchange)

    job = job_at(proxied(then=deaf))
    done = job.run(*words)
    assert (done.code, done.out) == (9, "")
    assert f"sealpipe resume {job.entries()[0]}" in done.err
    assert "one of these" not in done.err


def test_a_list_without_end_does_not_hold_it_for_ever(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def endless(exchange: Exchange) -> None:
        if exchange.received.method == "POST":
            lost()(exchange)
            return
        time.sleep(0.05)  # it is as endless at twenty pages a second
        number = len(exchange.server.received())
        row = f'{{"short_code": "x{number}", "expired_at": null, "public_key": "other"}}'
        faults.says(
            200,
            (
                f'{{"requests": [{row}], "pagination": {{"page": 1, "limit": 1, "total_pages": '
                f"999999}}}}"
            ),
        )(exchange)

    job = job_at(proxied(then=endless))
    assert job.run(*NEW[:-1], "4s").code == 9


@pytest.mark.parametrize("key", ["new", "credential", PAIR], ids=["new", "credential", "given"])
def test_in_python_it_is_the_same(
    proxied: Callable[..., Faulty], call_at: Callable[..., Caller], job: Job, key: object
) -> None:
    call = call_at(proxied(then=lost()).base_url)
    call.deadline = 30.0
    if key == "new":
        found = call("request", ["Password"], key="new")
        assert (found.outcome, found.short_code) == ("replayed", codes(job)[0])
        assert found.access_link is not None
        return
    with pytest.raises(OutcomeUnknownError) as unknown:
        call("request", ["Password"], key=key, outbox=job.outbox)
    assert codes(job)[0] in unknown.value.message
    assert [unknown.value.outbox_id] == job.entries()


def test_in_python_a_swap_names_its_code(
    proxied: Callable[..., Faulty], call_at: Callable[..., Caller], job: Job
) -> None:
    server = proxied(then=swaps(public_key=encode_base64url(PAIR.public_key)))
    with pytest.raises(PublicKeyMismatchError) as swapped:
        call_at(server.base_url)("request", ["Password"], outbox=job.outbox)
    assert (swapped.value.short_code, swapped.value.exit_code) == (codes(job)[0], 12)
    assert not swapped.value.unclear
    assert (len(creates(server.received())), job.left()) == (1, [])
