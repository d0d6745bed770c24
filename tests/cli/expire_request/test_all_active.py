"""`expire --all-active` ends all that an account has out, from a machine that created none of
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.faults import envelope
from support.faulty import Faulty, passes
from support.job import Job, client_of

KINDS = ("shares", "requests")


def create(job: Job) -> set[str]:
    """Two shares, a request of the credential's key and one with a key of its own; return the short
    codes of both.
    """
    for words in (
        ("share", "-f", "text:canary", "--link-file", "1.link"),
        ("share", "-f", "text:canary", "--name", "staging", "--link-file", "2.link"),
        ("request", "-a", "Password", "--receipt", "1.json"),
        (
            "request",
            "-a",
            "Password",
            "--key",
            "new",
            "--seed-to",
            "file:seed",
            "--receipt",
            "2.json",
        ),
    ):
        done = job.run(*words)
        assert done.code == 0, done
    return active(job, "shares") | active(job, "requests")


def active(job: Job, kind: str) -> set[str]:
    with client_of(job) as client:
        return {
            row.short_code
            for row in (client.iter_shares() if kind == "shares" else client.iter_requests())
        }


def elsewhere(job: Job, *words: str) -> tuple[int, str, str]:
    """Run a command as on a machine that has the credential and nothing else."""
    done = job.run(*words, SEALPIPE_STATE_DIR=str(job.terminal.here / "another-machine"))
    return done.code, done.out, done.err


def test_another_machine_ends_everything_after_yes(job: Job) -> None:
    created = create(job)
    assert len(created) == 4
    for kind in KINDS:
        sent = len(job.service.seen())
        code, _, err = elsewhere(job, kind, "expire", "--all-active")
        assert (code, f"would expire 2 {kind}" in err, "add --yes" in err) == (2, True, True)
        assert {seen.method for seen in job.service.seen()[sent:]} == {"GET"}
    assert active(job, "shares") | active(job, "requests") == created
    for kind in KINDS:
        code, out, _ = elsewhere(job, kind, "expire", "--all-active", "--yes", "--output", "json")
        assert (code, [row["outcome"] for row in json.loads(out)]) == (0, ["expired", "expired"])
    assert active(job, "shares") | active(job, "requests") == set()


def test_what_was_submitted_stays_and_can_be_collected(job: Job) -> None:
    create(job)
    links = [
        json.loads((job.terminal.here / f"{number}.json").read_text())["link"] for number in (1, 2)
    ]
    for link in links:
        job.service.submitter().submit(link, {"Password": "canary-of-the-vendor"})
    assert elsewhere(job, "requests", "expire", "--all-active", "--yes")[0] == 0
    for receipt, key in (("1.json", "credential"), ("2.json", "file:seed")):
        done = job.run("collect", receipt, "--key", key)
        assert (done.code, "canary-of-the-vendor" in done.out) == (0, True), done
    with client_of(job) as client:
        codes = [link.rpartition("/")[2] for link in links]
        assert [len(client.list_submissions(code).items) for code in codes] == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_active_it_succeeds(job: Job, kind: str) -> None:
    code, out, err = elsewhere(job, kind, "expire", "--all-active", "--output", "json")
    assert (code, out, "nothing to expire" in err) == (0, "[]\n", True)


@pytest.mark.parametrize(
    "more", [("--name", "staging-*"), ("--created-by-run", "o/r/7"), ("AAAAAAAAAAAA",)]
)
def test_with_a_choice_of_some_it_is_refused(job: Job, more: tuple[str, ...]) -> None:
    created = create(job)
    for kind in KINDS:
        code, _, err = elsewhere(job, kind, "expire", "--all-active", "--yes", *more)
        assert (code, "--all-active takes every active" in err) == (2, True)
    assert active(job, "shares") | active(job, "requests") == created


def test_a_share_that_is_opened_meanwhile_is_no_failure(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """The service does not know it any more, and it was listed: so it has ended."""
    server = proxied()
    job = job_at(server)
    create(job)
    gone = envelope(404, 1)
    # The list; DELETE, its metadata, ended shares.
    server.plan(passes, gone, gone, gone, then=passes)
    code, out, _ = elsewhere(job, "shares", "expire", "--all-active", "--yes", "--output", "json")
    assert (code, sorted(row["outcome"] for row in json.loads(out))) == (
        0,
        ["already-expired", "expired"],
    )


def test_a_request_that_is_deleted_meanwhile_is_told(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """An expired one would still be known: somebody deleted its submissions."""
    server = proxied()
    job = job_at(server)
    create(job)
    server.plan(passes, envelope(404, 1), then=passes)  # the list; its state
    code, out, _ = elsewhere(job, "requests", "expire", "--all-active", "--yes", "--output", "json")
    assert (code, sorted(row["outcome"] for row in json.loads(out))) == (6, ["expired", "failed"])
