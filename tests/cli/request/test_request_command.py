"""`sealpipe request`: the link on stdout, the receipt, who may answer, and what is refused before
anything is sent.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from cli.request.seen import (
    ANSWERS,
    ASK,
    answer,
    codes,
    creates,
    custody_pair,
    custody_seeds,
    nothing_shown,
    read,
)
from sealpipe.state import receipt as receipts
from sealpipe.wire.encoding import encode_base64url
from sealpipe_rehearsal.people import LinkRefusedError
from support import faults
from support.fake_web import Receiver
from support.faults import envelope
from support.faulty import Exchange, Fault, Faulty, passes
from support.job import Job

CODE = "open sésame"


def sent(job: Job) -> int:
    return len(job.service.seen())


# -- what comes of it ---------------------------------------------------------------------------


def test_the_link_is_the_result_and_nothing_is_left_behind(job: Job) -> None:
    done = job.run(*ASK)
    (code,) = codes(job)
    assert (done.code, done.out) == (0, f"{job.service.link_base_url}/r/{code}\n")
    assert re.fullmatch(rf"created {re.escape(code)}, expires \S+Z\n", done.err)
    assert job.left() == []


def test_what_is_typed_there_opens_with_the_credential_and_nothing_else_is_needed(job: Job) -> None:
    done = job.run(*ASK)
    (code,) = codes(job)
    answer(job, done.out)
    assert read(job, code, custody_pair(job.api_key)) == [ANSWERS]
    collected = job.run("collect", code, "--output", "json")
    assert {
        field["key"]: field["value"] for field in collected.json["submissions"][0]["fields"]
    } == ANSWERS


def test_the_form_shows_title_description_and_prompts_with_their_types(job: Job) -> None:
    done = job.run(*ASK, "--title", "Acme: staging", "--description", "For the nightly job")
    form = job.service.submitter().open_form(done.out.strip())
    assert (form["title"], form["description"]) == ("Acme: staging", "For the nightly job")
    assert form["fields"] == [
        {"item": "Staging password", "type": "password"},
        {"item": "User name", "type": "text"},
    ]


def test_without_a_title_the_prompts_are_it(job: Job) -> None:
    assert (
        job.service.submitter().look(job.run(*ASK).out.strip())["title"]
        == "Staging password, User name"
    )


@pytest.mark.parametrize(
    ("words", "days"), [([], 30), (["--expires-in", "7d"], 7), (["--expires-in", "90d"], 90)]
)
def test_it_can_be_answered_for_thirty_days_or_as_long_as_is_said(
    job: Job, words: list[str], days: int
) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    told = job.run(*ASK, *words, "--output", "json").json
    ends = datetime.fromisoformat(told["expires_at"])
    assert timedelta(0) <= ends - before - timedelta(days=days) < timedelta(minutes=2)


def test_it_is_answered_as_often_as_is_said_and_no_more(job: Job) -> None:
    link = job.run(*ASK, "--max-submissions", "2").out
    for _ in range(2):
        answer(job, link)
    with pytest.raises(LinkRefusedError) as closed:
        answer(job, link)
    assert closed.value.reason == "full"


# -- who may answer -----------------------------------------------------------------------------


def test_a_form_passcode_is_asked_for_and_its_use_is_explained(job: Job) -> None:
    done = job.run(*ASK, "--passcode-from", "env:CODE", CODE=CODE)
    assert done.code == 0
    assert (
        "the passcode was sent to the service: it gates the form, and encrypts nothing" in done.err
    )
    nothing_shown(done, CODE)
    with pytest.raises(LinkRefusedError) as without:
        answer(job, done.out)
    with pytest.raises(LinkRefusedError) as wrong:
        answer(job, done.out, passcode="another")
    assert {without.value.reason, wrong.value.reason} == {"passcode"}
    answer(job, done.out, passcode=CODE)
    (code,) = codes(job)
    # It encrypts nothing: the key alone opens what was typed.
    assert read(job, code, custody_pair(job.api_key)) == [ANSWERS]


def test_only_who_signs_in_from_one_of_the_domains_is_let_in(job: Job) -> None:
    link = job.run(
        *ASK, "--restrict-domain", "Acme.EXAMPLE", "--restrict-domain", "partner.example"
    ).out
    for who in (
        {},
        {"signed_in_as": "eve@evil.example"},
        {"signed_in_as": "eve@acme.example.evil.example"},
    ):
        with pytest.raises(LinkRefusedError) as refused:
            answer(job, link, **who)
        assert refused.value.reason == "domain"
    answer(job, link, signed_in_as="kim@acme.example")
    answer(job, link, signed_in_as="bob@PARTNER.example")


def test_only_the_addresses_are_let_in(job: Job) -> None:
    link = job.run(
        *ASK, "--restrict-address", "192.0.2.0/24", "--restrict-address", "2001:db8::7"
    ).out
    for address in ("192.0.3.1", "2001:db8::8", "127.0.0.1"):
        with pytest.raises(LinkRefusedError) as refused:
            answer(job, link, from_ip=address)
        assert refused.value.reason == "address"
    answer(job, link, from_ip="192.0.2.200")
    answer(job, link, from_ip="2001:db8::7")


# -- the receipt --------------------------------------------------------------------------------


def test_the_receipt_holds_what_collect_needs_the_link_and_no_secret(job: Job) -> None:
    done = job.run(*ASK, "--receipt", "acme.json", "--passcode-from", "env:CODE", CODE=CODE)
    file = job.terminal.here / "acme.json"
    text = file.read_text()
    found = receipts.read_receipt(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (found.short_code, found.key, found.seed) == (codes(job)[0], "credential", None)
    assert [tuple(each) for each in found.prompts] == [
        ("staging_password", "Staging password", "password"),
        ("user", "User name", "text"),
    ]
    assert found.public_key == encode_base64url(custody_pair(job.api_key).public_key)
    assert found.link == done.out.strip()
    for secret in (CODE, job.api_key.rpartition(".")[0], *custody_seeds(job.api_key)):
        assert secret not in text


def test_a_file_that_turns_up_meanwhile_is_not_replaced_and_the_request_is_finished_elsewhere(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def meanwhile(exchange: Exchange) -> None:
        job.terminal.file("acme.json", "theirs")
        passes(exchange)

    job = job_at(proxied(then=meanwhile))
    done = job.run(*ASK, "--receipt", "acme.json")
    (entry,) = job.entries()
    assert (done.code, done.out) == (11, "")
    assert (job.terminal.here / "acme.json").read_text() == "theirs"
    assert f"sealpipe resume {entry}" in done.err
    listed = job.resume("--list").out
    assert f"request {codes(job)[0]}" in listed
    assert "receipt to" in listed
    assert "share" not in listed
    (job.terminal.here / "acme.json").unlink()
    again = job.resume()
    assert (again.code, again.out) == (0, f"{job.service.link_base_url}/r/{codes(job)[0]}\n")
    assert receipts.read_receipt(job.terminal.here / "acme.json").short_code == codes(job)[0]
    assert job.left() == []


# -- sending ------------------------------------------------------------------------------------


def test_a_link_that_is_sent_stands_in_its_message_and_nowhere_else(
    job: Job, receiver: Receiver
) -> None:
    words = [
        "--send",
        receiver.target + "?for={who}",
        "--send",
        "file:link.txt",
        "--param",
        "who=env:WHO",
    ]
    done = job.run(
        *ASK,
        *words,
        "--output",
        "json",
        WHO="kim-77",
        SEALPIPE_PLUGIN_WEBHOOK__SECRET="whsec-0123456789",
    )
    (hook,) = receiver.hooks
    link = hook.json["link"]
    assert (done.code, done.json["collect_link"], done.json["delivered"]) == (
        0,
        None,
        ["webhook", "file"],
    )
    assert (hook.json["event"], hook.target.partition("?")[2]) == ("request", "for=kim-77")
    assert "You are asked for a secret" in hook.json["text"]
    assert (job.terminal.here / "link.txt").read_text() == link + "\n"
    nothing_shown(done, link, "kim-77")
    answer(job, link)


def test_the_message_says_that_the_passcode_comes_separately(job: Job) -> None:
    done = job.run(*ASK, "--send", "file:m.txt", "--passcode-from", "env:CODE", CODE=CODE)
    assert (done.code, done.out) == (0, "")
    nothing_shown(done, CODE)
    assert CODE not in (job.terminal.here / "m.txt").read_text()


def test_what_did_not_get_out_is_sent_by_resume(job: Job, receiver: Receiver) -> None:
    receiver.answers = lambda _: 403
    secret = {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "whsec-0123456789"}
    done = job.run(*ASK, "--send", receiver.target, "--receipt", "r.json", **secret)
    (entry,) = job.entries()
    (code,) = codes(job)
    assert (done.code, done.out) == (11, "")
    assert f"the request exists; `sealpipe resume {entry}`" in done.err
    (row,) = job.resume("--list", "--output", "json", **secret).json["entries"]
    assert (row["kind"], row["short_code"]) == ("request", code)
    assert [each["what"] for each in row["left"]] == ["link", "receipt"]
    receiver.answers = lambda _: 204
    again = job.resume(**secret)
    assert (again.code, again.out, codes(job), job.left()) == (0, "", [code], [])
    assert receiver.secrets[-1].endswith(f"/r/{code}")
    assert receipts.read_receipt(job.terminal.here / "r.json").short_code == code


def test_in_a_gitlab_job_a_request_that_was_cut_off_can_be_resumed(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """A collect link opens nothing: the rule about a share's link does not hold for it."""
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    assert job.run(*ASK, GITLAB_CI="true").code == 9
    server.mend()
    done = job.resume("--all", GITLAB_CI="true")
    assert (done.code, done.out) == (0, f"{job.service.link_base_url}/r/{codes(job)[0]}\n")


# -- refused by the service ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code", "kept", "requests"),
    [
        (envelope(409, 105), 8, 0, 1),
        (envelope(429, 107, {"Retry-After": "30"}), 7, 0, 1),
        (envelope(400, 19, data={"title": "too \x1b[2J long"}), 5, 0, 1),
        (envelope(403, 61), 4, 0, 1),
    ],
    ids=["105", "429 to the end", "19", "61"],
)
def test_a_refusal_ends_with_its_code_and_makes_nothing(
    proxied: Callable[..., Faulty],
    job_at: Callable[..., Job],
    fault: Fault,
    code: int,
    kept: int,
    requests: int,
) -> None:
    server = proxied(then=fault)
    job = job_at(server)
    done = job.run(*ASK, "--deadline", "30s", "--receipt", "r.json")
    assert (done.code, done.out, len(job.entries())) == (code, "", kept), done
    assert len(creates(server.received())) == requests
    assert codes(job) == []
    assert "\x1b" not in done.err
    assert not (job.terminal.here / "r.json").exists()


@pytest.mark.parametrize(
    "first", [envelope(409, 106), envelope(429, 107, {"Retry-After": "0"})], ids=["106", "429"]
)
def test_one_that_is_under_way_or_held_back_is_sent_again_with_the_same_bytes(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], first: Fault
) -> None:
    server = proxied(faults.reset_after, first)
    job = job_at(server)
    done = job.run(*ASK, "--output", "json")
    assert (done.code, done.json["outcome"], len(codes(job))) == (0, "replayed", 1)
    received = server.received()
    assert len(received) == 3
    assert (
        len({each.body for each in received})
        == len({each.header("idempotency-key") for each in received})
        == 1
    )


def test_help_says_what_is_sent_and_what_is_never_overwritten(job: Job) -> None:
    told = " ".join(job.run("request", "--help").out.split())
    assert "SENT TO THE SERVICE" in told
    assert "holds the collect link and no secret" in told
    assert all(
        option in told
        for option in ("--ask", "--max-submissions", "--key", "--seed-to", "--receipt", "--send")
    )
    assert "[ID=]PROMPT[:TYPE]" in told


def test_everything_can_be_set_in_the_environment_and_the_config_file(job: Job) -> None:
    job.terminal.file("c.toml", '[request]\ntitle = "from the file"\nmax_submissions = 3\n')
    environ = {
        "SEALPIPE_CONFIG": str(job.terminal.here / "c.toml"),
        "SEALPIPE_REQUEST_ASK": "Password\nuser=Name:text",
    }
    before = sent(job)
    done = job.run("request", **environ)
    assert done.code == 0
    (body,) = creates(job.service.seen()[before:])
    assert (body["title"], body["max_submission"]) == ("from the file", 3)
    assert [field["item"] for field in body["fields"]] == ["Password", "Name"]
    assert json.dumps(body).count("user") == 0  # the id is ours


def test_what_only_the_service_decides_is_sent_as_it_is_given(job: Job) -> None:
    before = sent(job)
    words = (
        "--views",
        "3",
        "--requires-login",
        "--organization-id",
        "acme",
        "--expires-at",
        "2099-01-02T03:04:05Z",
    )
    assert job.run(*ASK, *words).code == job.run(*ASK).code == 0
    full, bare = creates(job.service.seen()[before:])
    assert (full["access_counts_left"], full["requires_login"], full["organization_id"]) == (
        3,
        True,
        "acme",
    )
    assert (full["expired_at"], "requires_mfa" in full) == ("2099-01-02T03:04:05Z", False)
    assert not bare.keys() & {
        "access_counts_left",
        "requires_login",
        "requires_mfa",
        "organization_id",
    }
