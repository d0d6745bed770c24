"""`sealpipe requests list | show | submissions | expire | purge`: text, JSON, and what each refusal
ends with.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from sealpipe.api.operation import Credential
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64
from support.job import PAIR, Job, client_of, made, submitted

ENDS = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)


def custody_key(api_key: str) -> bytes:
    """The public key of a credential's custody secret."""
    secret = Credential.parse(api_key).custody_secret
    assert secret is not None
    return keys.from_custody_secret(secret.reveal()).public_key


@pytest.fixture
def previous(job: Job) -> str:
    """The credential before the job's."""
    return job.service.create_key(account=job.account).reveal()


@pytest.fixture
def codes(job: Job, previous: str) -> list[str]:
    """Requests sealed to this credential's key, to the previous one's, and to another; oldest
    first.
    """
    public_keys = (custody_key(job.api_key), custody_key(previous), PAIR.public_key)
    return [made(job, public_key=public_key, expires_at=ENDS) for public_key in public_keys]


def test_the_previous_credential_is_never_sent(job: Job, previous: str) -> None:
    before = len(job.service.seen())
    assert job.run("requests", "list", SEALPIPE_API_KEY_PREVIOUS=previous).code == 0
    parts = previous.partition("_sk_live_")[2].split(".")
    sent = [repr(seen) for seen in job.service.seen()[before:]]
    assert sent
    assert [part for part in parts if any(part in text for text in sent)] == []


@pytest.mark.usefixtures("extended")
def test_what_has_ended_is_listed_when_asked_for(job: Job, codes: list[str]) -> None:
    assert job.run("requests", "expire", codes[1]).code == 0
    assert (
        job.run("requests", "list", "--status", "expired").out
        == f"{codes[1]}\texpired\t-\texpired\t-\t-\n"
    )
    assert job.run("requests", "list").out.count("\n") == 2


def test_submissions_tells_code_time_and_size_and_json_the_ciphertext(
    job: Job, codes: list[str]
) -> None:
    (submission,) = submitted(job, codes[2], "the vendor's password")
    done = job.run("requests", "submissions", codes[2])
    told = job.run("requests", "submissions", codes[2], "--output", "json").json
    (row,) = told["submissions"]
    assert (told["short_code"], told["count"], told["skipped"]) == (codes[2], 1, 0)
    assert row["short_code"] == submission
    assert row["bytes"] == len(decode_base64(row["data"]))
    assert done.out == f"{submission}\t{row['created_at']}\t{row['bytes']} bytes\n"
    assert "vendor" not in done.out + json.dumps(told)


def test_purge_destroys_and_keeps_the_ciphertext(job: Job, codes: list[str]) -> None:
    (submission,) = submitted(job, codes[0], "x")
    done = job.run("requests", "purge", codes[0], "--confirm", codes[0])
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"purged {codes[0]}\nkept 1 submission")
    assert submission in next((job.state / "requests").iterdir()).read_text()
    assert job.run("requests", "show", codes[0]).code == 6


def test_a_request_about_to_expire_is_reported_as_expiring(job: Job) -> None:
    code = made(job, expires_at=datetime.now(UTC) + timedelta(seconds=90))
    done = job.run("requests", "expire", code)
    assert (done.code, done.out) == (0, "")
    assert "too soon to expire it safely" in done.err


@pytest.mark.parametrize(
    ("scope", "command"),
    [
        ("requests:write", "list"),
        ("requests:write", "expire CODE"),
        ("requests:read", "expire CODE"),
    ],
)
def test_a_key_without_the_scope_ends_with_4_and_nothing_has_changed(
    job: Job, codes: list[str], scope: str, command: str
) -> None:
    key = job.service.create_key(account=job.account, scopes=[scope]).reveal()
    done = job.run("requests", *command.replace("CODE", codes[0]).split(), SEALPIPE_API_KEY=key)
    assert (done.code, done.out) == (4, "")
    with client_of(job) as client:
        assert client.get_request(codes[0]).expires_at == ENDS
