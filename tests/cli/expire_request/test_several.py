"""Several are expired after a list and --yes: each under the policy and once, whatever happens to
the others.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpipe.network import rate
from support import faults
from support.commands import SEALPIPE
from support.faults import envelope
from support.faulty import Faulty, passes
from support.job import Job, client_of
from support.terminal import PATIENCE

NAMED = ("--name", "staging-*")


def ask(job: Job, name: str, **environ: str) -> str:
    done = job.run(
        "request", "-a", "Password", "--name", name, "--receipt", f"{name}.json", **environ
    )
    assert done.code == 0, done
    code: str = json.loads((job.terminal.here / f"{name}.json").read_text())["short_code"]
    return code


def deletes(job: Job, code: str) -> int:
    return sum(seen.method == "DELETE" and code in seen.target for seen in job.service.seen())


def active(job: Job) -> set[str]:
    with client_of(job) as client:
        return {row.short_code for row in client.iter_requests()}


@pytest.fixture
def codes(job: Job) -> list[str]:
    return [ask(job, name) for name in ("staging-a", "staging-b", "prod-c")]


@pytest.mark.parametrize(
    ("typed", "code", "left"), [("yes", 0, 1), ("no", 2, 3), ("", 2, 3), ("y", 2, 3)]
)
def test_at_a_terminal_the_list_is_confirmed_by_yes(
    job: Job, codes: list[str], typed: str, code: int, left: int
) -> None:
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(
            [*SEALPIPE, "requests", "expire", *NAMED], stdin=slave, stdout=subprocess.PIPE,
            stderr=slave,
            env=job.terminal.with_environ({}), cwd=job.terminal.here,
        ) as process:  # fmt: skip
            os.close(slave)
            seen = b""
            while b"Type yes" not in seen:
                seen += os.read(master, 4096)
            assert len(active(job)) == 3
            os.write(master, f"{typed}\n".encode())
            assert process.wait(PATIENCE) == code
    finally:
        os.close(master)
    assert all(each.encode() in seen for each in codes[:2])
    assert codes[2].encode() not in seen
    assert len(active(job)) == left


def test_without_yes_nothing_is_sent_at_all(job: Job, codes: list[str]) -> None:
    for words in (NAMED, tuple(codes), (codes[0], codes[1]), ("staging-a.json", "prod-c.json")):
        before = len(job.service.seen())
        done = job.run("requests", "expire", *words)
        assert (done.code, done.out, len(job.service.seen())) == (2, "", before), words
        assert "would expire" in done.err


def test_one_code_and_one_receipt_need_no_yes(job: Job, codes: list[str]) -> None:
    assert job.run("requests", "expire", codes[0]).code == 0
    assert job.run("requests", "expire", "staging-b.json").code == 0
    assert active(job) == {codes[2]}


def test_a_failure_stops_no_other_and_the_worst_code_wins(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """What has expired but could not be kept (11) comes before what does not exist (6)."""
    server = proxied()
    job = job_at(server)
    codes = [ask(job, name) for name in ("a", "b", "c")]
    fine = (passes, passes, passes, passes)
    # state, submissions, state, DELETE, and the last submissions
    server.plan(*fine, passes, *fine, envelope(404, 70), then=passes)
    done = job.run(
        "requests", "expire", codes[0], codes[1], "nowhere", codes[2], "--yes", "--output", "json"
    )
    rows = done.out and json.loads(done.out)
    assert [row["short_code"] for row in rows] == [codes[0], codes[1], "nowhere", codes[2]]
    assert [row["outcome"] for row in rows] == ["expired", "failed", "failed", "expired"]
    assert [row["error"]["exit_code"] for row in rows if "error" in row] == [11, 6]
    assert (done.code, active(job)) == (11, set())
    assert json.loads(done.err.splitlines()[-1])["error"]["message"].startswith(f"{codes[1]}: ")
    assert "sealpipe: there is no request nowhere: " in done.err
    assert [deletes(job, code) for code in codes] == [1, 1, 1]


def test_each_is_deleted_once_however_often_they_are_expired(job: Job, codes: list[str]) -> None:
    words = ("requests", "expire", *codes, codes[0], "staging-a.json", "--yes")
    assert [job.run(*words).code for _ in range(2)] == [0, 0]
    assert [deletes(job, code) for code in codes] == [1, 1, 1]


def test_the_rate_limit_is_waited_for(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate, "MIN_FIRST_RATE", 20.0)  # a wait, and a short one
    server = proxied()
    job = job_at(server)
    codes = [ask(job, name) for name in ("staging-a", "staging-b")]
    server.plan(
        envelope(429, 107, {"Retry-After": "0"}),
        passes,
        envelope(429, 107, {"Retry-After": "0"}),
        then=passes,
    )
    assert job.run("requests", "expire", *NAMED, "--yes").code == 0
    assert (active(job), [deletes(job, code) for code in codes]) == (set(), [1, 1])


def test_policy_and_audit_see_each(job: Job, codes: list[str]) -> None:
    here = job.terminal.here
    audit = here / "audit.jsonl"
    job.terminal.file("config.toml", f'[audit]\nfile = "{audit}"\n')
    job.terminal.environ["SEALPIPE_CONFIG"] = str(here / "config.toml")
    assert job.run("requests", "expire", *NAMED, "--yes").code == 0
    rows = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(row["event"], row["short_codes"], row["outcome"]) for row in rows] == [
        ("expire", [code], outcome)
        for code in (codes[1], codes[0])
        for outcome in ("begun", "expired")
    ]


def test_a_run_is_named_as_the_audit_log_names_it(job: Job) -> None:
    here = job.terminal.here
    job.terminal.file("config.toml", f'[audit]\nfile = "{here}/audit.jsonl"\n')
    github = {
        "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_JOB": "ask", "SEALPIPE_CONFIG": str(here / "config.toml"),
    }  # fmt: skip
    code = ask(job, "of-the-run", **github)
    other = ask(job, "of-nobody")
    run = json.loads((here / "audit.jsonl").read_text().splitlines()[0])["run"]
    assert job.run("requests", "expire", "--created-by-run", run, "--yes").code == 0
    assert (run, active(job), deletes(job, code)) == ("o/r/7/2/ask", {other}, 1)


@pytest.mark.parametrize("run", ["/", "//", "o/", "o/r/"])
def test_a_run_whose_last_variable_is_not_set_is_none(job: Job, run: str) -> None:
    """`"$GITHUB_REPOSITORY/$GITHUB_RUN_ID"` is `/` outside of GitHub, and `o/r/` if it has no
    number.
    """
    github = {
        "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_JOB": "ask",
    }  # fmt: skip
    known = {ask(job, "of-the-run", **github), ask(job, "of-nobody")}
    done = job.run("requests", "expire", "--created-by-run", run, "--yes")
    assert (done.code, active(job)) == (6, known)


def test_what_expired_long_ago_is_left_out(job: Job, codes: list[str]) -> None:
    for path in (job.state / "created").glob("*.json"):
        members = json.loads(path.read_text())
        if members["name"] == "staging-a":
            path.write_text(json.dumps({**members, "expires_at": "2026-01-01T00:00:00Z"}))
    assert job.run("requests", "expire", *NAMED, "--yes").code == 0
    assert active(job) == {codes[0], codes[2]}


def test_a_code_that_looks_like_a_receipt_is_a_code_where_there_is_no_file(
    job: Job, tmp_path: Path
) -> None:
    for word in ("a/b", "x.json", str(tmp_path / "gone.json")):
        done = job.run("requests", "expire", word)
        assert (done.code, "Request not found" in done.err) == (6, True)


def test_a_lost_connection_to_one_does_not_end_the_others(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """A DELETE without a response is never repeated: GETs find out."""
    server = proxied()
    job = job_at(server)
    codes = [ask(job, name) for name in ("staging-a", "staging-b")]
    server.plan(passes, passes, passes, faults.reset_after, then=passes)
    assert job.run("requests", "expire", *NAMED, "--yes").code == 0
    assert (active(job), [deletes(job, code) for code in codes]) == (set(), [1, 1])
