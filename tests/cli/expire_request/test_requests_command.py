"""`sealpipe requests list | show | submissions | expire | purge`: text, JSON, and what each refusal ends with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from sealpipe.api import Credential
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64, encode_base64url
from support.job import PAIR, Job, client_of, made, submitted

ENDS = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)
ENDS_TEXT = "2099-01-02T03:04:05Z"


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
    """Requests sealed to this credential's key, to the previous one's, and to another; oldest first."""
    public_keys = (custody_key(job.api_key), custody_key(previous), PAIR.public_key)
    return [made(job, public_key=public_key, expires_at=ENDS) for public_key in public_keys]


def test_list_prints_code_expiry_and_whose_key_newest_first(job: Job, codes: list[str], previous: str) -> None:
    done = job.run("requests", "list", SEALPIPE_API_KEY_PREVIOUS=previous)
    assert (done.code, done.err) == (0, "")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert rows == [
        [codes[2], ENDS_TEXT, "other"],
        [codes[1], ENDS_TEXT, "previous"],
        [codes[0], ENDS_TEXT, "credential"],
    ]


def test_without_the_previous_credential_what_is_sealed_to_it_is_another_key(job: Job, codes: list[str]) -> None:
    told = job.run("requests", "list", "--output", "json").json
    assert list(told) == ["schema", "requests", "pagination"]
    assert [row["key"] for row in told["requests"]] == ["other", "other", "credential"]
    assert told["requests"][0] == {
        "short_code": codes[2],
        "expires_at": ENDS_TEXT,
        "public_key": encode_base64url(PAIR.public_key),
        "key": "other",
    }
    assert told["pagination"] == {"page": 1, "limit": 25, "total_pages": 1, "total": 3}


def test_a_credential_of_two_parts_cannot_tell_whose_key_it_is(job: Job, codes: list[str]) -> None:
    two_parts = job.api_key.rpartition(".")[0]
    assert job.run("requests", "show", codes[0], SEALPIPE_API_KEY=two_parts).out == f"{codes[0]}\t{ENDS_TEXT}\t-\n"
    told = job.run("requests", "show", codes[0], "--output", "json", SEALPIPE_API_KEY=two_parts).json
    assert told["key"] is None


def test_the_previous_credential_is_never_sent(job: Job, previous: str) -> None:
    before = len(job.service.seen())
    assert job.run("requests", "list", SEALPIPE_API_KEY_PREVIOUS=previous).code == 0
    parts = previous.partition("_sk_live_")[2].split(".")
    sent = [repr(seen) for seen in job.service.seen()[before:]]
    assert sent
    assert [part for part in parts if any(part in text for text in sent)] == []


def test_a_previous_credential_that_is_none_is_named_and_not_shown(job: Job) -> None:
    done = job.run("requests", "list", SEALPIPE_API_KEY_PREVIOUS="svc_sk_live_oops")
    assert (done.code, done.out) == (2, "")
    assert "SEALPIPE_API_KEY_PREVIOUS" in done.err
    assert "oops" not in done.err


def test_pages_are_named_and_all_walks_them(job: Job, codes: list[str]) -> None:
    first = job.run("requests", "list", "--limit", "2")
    assert [line.partition("\t")[0] for line in first.out.splitlines()] == [codes[2], codes[1]]
    assert first.err == "page 1 of 2; --all lists all pages\n"
    told = job.run("requests", "list", "--all", "--limit", "2", "--output", "json").json
    assert [row["short_code"] for row in told["requests"]] == codes[::-1]
    assert told["pagination"]["total"] == 3


@pytest.mark.usefixtures("extended")
def test_what_has_ended_is_listed_when_asked_for(job: Job, codes: list[str]) -> None:
    assert job.run("requests", "expire", codes[1]).code == 0
    assert job.run("requests", "list", "--status", "expired").out == f"{codes[1]}\texpired\t-\n"
    assert job.run("requests", "list").out.count("\n") == 2


def test_submissions_tells_code_time_and_size_and_json_the_ciphertext(job: Job, codes: list[str]) -> None:
    (submission,) = submitted(job, codes[2], "the vendor's password")
    done = job.run("requests", "submissions", codes[2])
    told = job.run("requests", "submissions", codes[2], "--output", "json").json
    (row,) = told["submissions"]
    assert (told["short_code"], told["count"], told["skipped"]) == (codes[2], 1, 0)
    assert row["short_code"] == submission
    assert row["bytes"] == len(decode_base64(row["data"]))
    assert done.out == f"{submission}\t{row['created_at']}\t{row['bytes']} bytes\n"
    assert "vendor" not in done.out + json.dumps(told)


def test_expire_ends_a_request_and_tells_where_the_ciphertext_is_kept(job: Job, codes: list[str]) -> None:
    submitted(job, codes[0], "x")
    done = job.run("requests", "expire", codes[0])
    (record,) = (job.state / "requests").iterdir()
    assert (done.code, done.out) == (0, "")
    assert done.err == f"expired {codes[0]}\nkept 1 submission, 0 of them late, in {record}\n"
    again = job.run("requests", "expire", codes[0], "--output", "json")
    assert again.json == {
        "schema": 1,
        "short_code": codes[0],
        "outcome": "already-expired",
        "expires_at": None,
        "kept": 1,
        "late": 0,
        "skipped": 0,
        "kept_in": str(record),
    }


def test_purge_needs_its_confirmation(job: Job, codes: list[str]) -> None:
    for words in ([], ["--confirm", "other"], ["--confirm", codes[1]]):
        done = job.run("requests", "purge", codes[0], *words)
        assert (done.code, done.out) == (2, "")
        assert "not confirmed" in done.err
    with client_of(job) as client:
        assert client.get_request(codes[0]).expires_at == ENDS


def test_purge_destroys_and_keeps_the_ciphertext(job: Job, codes: list[str]) -> None:
    (submission,) = submitted(job, codes[0], "x")
    done = job.run("requests", "purge", codes[0], "--confirm", codes[0])
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"purged {codes[0]}\nkept 1 submission")
    assert submission in next((job.state / "requests").iterdir()).read_text()
    assert job.run("requests", "show", codes[0]).code == 6


def test_one_that_ends_by_itself_at_once_is_told_so(job: Job) -> None:
    code = made(job, expires_at=datetime.now(UTC) + timedelta(seconds=90))
    done = job.run("requests", "expire", code)
    assert (done.code, done.out) == (0, "")
    assert "too soon to expire it safely" in done.err


@pytest.mark.parametrize("command", ["show", "submissions", "expire", "purge"])
def test_a_request_that_was_never_there_ends_with_6_and_leaves_no_file(job: Job, command: str) -> None:
    confirm = ["--confirm", "nowhere"] if command == "purge" else []
    done = job.run("requests", command, "nowhere", *confirm)
    assert (done.code, done.out) == (6, "")
    assert "404, error_code 70" in done.err
    assert job.left() == []


@pytest.mark.parametrize(
    ("scope", "command"),
    [("requests:write", "list"), ("requests:write", "expire CODE"), ("requests:read", "expire CODE")],
)
def test_a_key_without_the_scope_ends_with_4_and_nothing_has_changed(
    job: Job, codes: list[str], scope: str, command: str
) -> None:
    key = job.service.create_key(account=job.account, scopes=[scope]).reveal()
    done = job.run("requests", *command.replace("CODE", codes[0]).split(), SEALPIPE_API_KEY=key)
    assert (done.code, done.out) == (4, "")
    with client_of(job) as client:
        assert client.get_request(codes[0]).expires_at == ENDS


def test_a_state_folder_that_cannot_be_written_ends_with_2_before_anything_is_sent(job: Job, codes: list[str]) -> None:
    before = len(job.service.seen())
    done = job.run("requests", "expire", codes[0], SEALPIPE_STATE_DIR="/proc/nowhere")
    assert (done.code, done.out) == (2, "")
    assert len(job.service.seen()) == before


def test_the_config_files_table_reaches_the_groups_commands(job: Job, codes: list[str]) -> None:
    job.terminal.file("config.toml", "[requests]\nlimit = 1\n")
    done = job.run("requests", "list", SEALPIPE_CONFIG=str(job.terminal.here / "config.toml"))
    assert done.out.splitlines() == [f"{codes[2]}\t{ENDS_TEXT}\tother"]
