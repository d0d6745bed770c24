"""Policies and the audit see a request: its prompts, recipients, expiry and number of answers;
never a secret.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.request.seen import ASK, codes
from support.job import Job

CODE = "c4nary-passcode"


@pytest.fixture
def audit(job: Job) -> Path:
    """The audit log's file, and a policy's: whatever is written into that."""
    here = job.terminal.here
    job.terminal.file("policy.toml", "")
    job.terminal.file(
        "config.toml",
        (
            f'[audit]\nfile = "{here}/audit.jsonl"\nrequired = true\n[policy]\nfile = '
            f'"{here}/policy.toml"\n'
        ),
    )
    job.terminal.environ["SEALPIPE_CONFIG"] = str(here / "config.toml")
    return here / "audit.jsonl"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_the_audit_is_notified_before_and_after(job: Job, audit: Path) -> None:
    done = job.run(
        *ASK,
        "--send",
        "file:link.txt",
        "--max-submissions",
        "2",
        "--passcode-from",
        "env:CODE",
        CODE=CODE,
    )
    before, after, message = lines(audit)
    assert done.code == 0
    assert (before["event"], before["outcome"], after["outcome"]) == (
        "request",
        "sending",
        "created",
    )
    assert (after["short_code"], after["views"]) == (codes(job)[0], 2)
    assert after["labels"] == ["Staging password", "User name"]
    assert after["title"] == "Staging password, User name"
    assert after["recipients"] == [f"file:{job.terminal.here}/link.txt"]
    assert (message["event"], message["what"], message["outcome"]) == ("delivery", "link", "sent")
    text = audit.read_text()
    assert CODE not in text
    assert "/r/" not in text


def test_a_failed_seed_write_is_recorded_as_the_end(job: Job, audit: Path) -> None:
    job.terminal.file("seed", "older")
    assert job.run(*ASK, "--key", "new", "--seed-to", "file:seed").code == 14
    assert [line["outcome"] for line in lines(audit)] == ["sending", "WriteConflictError"]


def test_what_resume_finishes_is_recorded_too(job: Job, audit: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh"]
    assert job.run(*ASK, under=closed).code == 11
    assert job.resume().code == 0
    assert {line["short_code"] for line in lines(audit) if line["outcome"] != "sending"} == set(
        codes(job)
    )


@pytest.mark.parametrize(
    ("rule", "words", "says"),
    [
        (
            'types = ["password"]',
            [],
            "sealpipe: the policy does not allow this: the field type text is not",
        ),
        ('longest_expiry = "7d"', [], "it has to expire within 7d"),
        ("most_submissions = 1", [], "it allows at most 1 submission"),
        ("most_submissions = 1", ["--max-submissions", "2"], "it allows at most 1 submission"),
        ('recipients = ["email:*"]', ["--send", "file:link.txt"], "is not allowed"),
    ],
)
def test_what_a_policy_does_not_allow_is_not_made_and_no_seed_is_stored(
    job: Job, audit: Path, rule: str, words: list[str], says: str
) -> None:
    job.terminal.file("policy.toml", rule)
    before = len(job.service.seen())
    done = job.run(*ASK, "--key", "new", "--seed-to", "file:seed", *words)
    assert (done.code, done.out, len(job.service.seen())) == (2, "", before)
    assert [(line["event"], line["outcome"]) for line in lines(audit)] == [("request", "refused")]
    assert says in done.err
    assert not (job.terminal.here / "seed").exists()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('types = ["password", "text"]\nsources = []\nmost_views = 1', []),
        ('longest_expiry = "30d"', []),
        ('longest_expiry = "7d"', ["--expires-in", "7d"]),
        ("most_submissions = 2", ["--max-submissions", "2"]),
        ('recipients = ["file:*"]', ["--send", "file:link.txt"]),
    ],
)
def test_what_it_allows_is_made(job: Job, audit: Path, rule: str, words: list[str]) -> None:
    """`most_views` is about shares."""
    job.terminal.file("policy.toml", rule)
    assert job.run(*ASK, *words).code == 0
    assert len(codes(job)) == 1
    assert audit.exists()


def test_a_share_is_not_bound_by_the_rule_for_requests(job: Job, audit: Path) -> None:
    job.terminal.file("policy.toml", "most_submissions = 1")
    assert job.share("--views", "5").code == 0
    assert lines(audit)


def test_an_audit_that_cannot_be_written_stops_it(job: Job, audit: Path) -> None:
    audit.mkdir()
    before = len(job.service.seen())
    done = job.run(*ASK)
    assert (done.code, done.out, len(job.service.seen())) == (14, "", before)


def test_a_dry_run_asks_the_policy_and_leaves_nothing_behind(job: Job, audit: Path) -> None:
    before = len(job.service.seen())
    words = (
        "--key",
        "new",
        "--seed-to",
        "file:seed",
        "--receipt",
        "r.json",
        "--send",
        "file:link.txt",
        "--dry-run",
    )
    done = job.run(*ASK, *words)
    assert (done.code, lines(audit), job.left()) == (0, [], [])
    assert not (job.state / "created").exists()
    job.terminal.file("policy.toml", 'recipients = ["email:*"]')
    refused = job.run(*ASK, *words)
    assert (refused.code, refused.out, len(job.service.seen())) == (2, "", before)
    assert "is not allowed" in refused.err
    assert sorted(path.name for path in job.terminal.here.iterdir()) == [
        "audit.jsonl",
        "config.toml",
        "policy.toml",
    ]
