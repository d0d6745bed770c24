"""A reminder sends the collect link once more: to an open request only, under the policy, and told
to the audit.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.request.seen import codes
from sealpipe.state.receipt import read_receipt
from support.fake_web import Receiver
from support.faulty import Exchange, Fault, Faulty, passes
from support.job import Job

ASK = ("request", "-a", "Password", "--name", "acme", "--receipt", "acme.json")
REMIND = ("requests", "remind", "acme.json", "--send", "file:mail.txt")


def answers(members: dict[str, object]) -> Fault:
    """Answer with other members than the service."""

    def fault(exchange: Exchange) -> None:
        answer = exchange.forward()
        body = json.dumps({**json.loads(answer.body), **members}).encode()
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    return fault


@pytest.fixture
def asked(job: Job) -> Job:
    assert job.run(*ASK).code == 0
    return job


def mails(job: Job) -> list[str]:
    return sorted(path.name for path in job.terminal.here.iterdir() if path.suffix == ".txt")


def test_a_request_on_another_machine_is_reminded_of_by_its_receipt(
    asked: Job, tmp_path: Path
) -> None:
    state = {"SEALPIPE_STATE_DIR": str(tmp_path / "elsewhere")}
    assert asked.run(*REMIND, **state).code == 0
    receipt = read_receipt(asked.terminal.here / "acme.json")
    assert (asked.terminal.here / "mail.txt").read_text() == f"{receipt.link}\n"
    unknown = asked.run("requests", "remind", "--name", "acme", "--send", "file:2.txt", **state)
    assert (unknown.code, mails(asked)) == (2, ["mail.txt"])


def test_a_receipt_without_a_link_takes_the_address_of_the_settings(asked: Job) -> None:
    file = asked.terminal.here / "acme.json"
    members = json.loads(file.read_text())
    link = members.pop("link")
    file.write_text(json.dumps(members))
    assert asked.run("requests", "link", "acme.json").out == f"{link}\n"
    assert asked.run(*REMIND).code == 0
    assert (asked.terminal.here / "mail.txt").read_text() == f"{link}\n"
    done = asked.run("requests", "link", "acme.json", SEALPIPE_LINK_BASE_URL=None)
    assert (done.code, "SEALPIPE_LINK_BASE_URL is not set" in done.err) == (2, True)


@pytest.mark.parametrize("base", ["https://evil.example", "https://127.0.0.1.evil.example/s"])
def test_a_changed_receipt_sends_nobody_to_another_address(asked: Job, base: str) -> None:
    file, code = asked.terminal.here / "acme.json", codes(asked)[0]
    file.write_text(json.dumps({**json.loads(file.read_text()), "link": f"{base}/r/{code}"}))
    done = asked.run(*REMIND)
    assert (done.code, mails(asked), asked.entries()) == (2, [], [])
    assert f"begins with {base}, and this machine has http://127.0.0.1" in done.err
    # The address moved, and a person says so.
    assert asked.run(*REMIND, SEALPIPE_LINK_BASE_URL=base).code == 0
    assert (asked.terminal.here / "mail.txt").read_text() == f"{base}/r/{code}\n"


def test_a_link_is_printed_without_credential_and_connection(asked: Job) -> None:
    code = codes(asked)[0]
    before = len(asked.service.seen())
    for words in (("acme.json",), ("--name", "acme"), (code,), (f"code:{code}",)):
        done = asked.run(
            "requests", "link", *words, SEALPIPE_API_KEY=None, SEALPIPE_LINK_BASE_URL=None
        )
        assert done.code == 0, done
        assert done.out.endswith(f"/r/{code}\n")
    assert len(asked.service.seen()) == before


def test_nobody_is_sent_to_a_form_whose_key_is_not_ours(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    assert job.run(*ASK).code == 0
    server.plan(answers({"public_key": "B" * 87}), then=passes)
    done = job.run(*REMIND)
    assert (done.code, mails(job), job.entries()) == (12, [], [])
    assert "another public key" in done.err


def test_a_policy_can_refuse_a_reminder_and_the_audit_has_it(asked: Job) -> None:
    here = asked.terminal.here
    asked.terminal.file("policy.toml", 'recipients = ["email:*"]')
    audit = here / "audit.jsonl"
    asked.terminal.file(
        "config.toml", f'[audit]\nfile = "{audit}"\n[policy]\nfile = "{here}/policy.toml"\n'
    )
    asked.terminal.environ["SEALPIPE_CONFIG"] = str(here / "config.toml")
    refused = asked.run(*REMIND)
    assert (refused.code, "is not allowed" in refused.err, mails(asked), asked.entries()) == (
        2,
        True,
        [],
        [],
    )
    asked.terminal.file("policy.toml", "")
    assert asked.run(*REMIND).code == 0
    first, before, after, message = (json.loads(line) for line in audit.read_text().splitlines())
    code = codes(asked)[0]
    assert [each["outcome"] for each in (first, before, after, message)] == [
        "refused",
        "sending",
        "reminded",
        "sent",
    ]
    assert all(
        each["short_codes"] == [code] and each["resumed"] is True for each in (first, before, after)
    )
    assert (before["event"], before["labels"], before["recipients"]) == (
        "request",
        ["Password"],
        [f"file:{here}/mail.txt"],
    )
    assert (message["event"], message["short_code"]) == ("delivery", code)
    assert "/r/" not in audit.read_text()


def test_a_message_that_fails_is_kept_and_sent_by_resume(asked: Job, receiver: Receiver) -> None:
    receiver.answers = lambda _: 403
    asked.terminal.environ["SEALPIPE_PLUGIN_WEBHOOK__SECRET"] = "whsec-0123456789abcdef"
    words = ("requests", "remind", "acme.json", "--send", receiver.target)
    done = asked.run(*words)
    (entry,) = asked.entries()
    assert (done.code, f"sealpipe resume {entry}" in done.err) == (11, True)
    again = asked.run(*words)
    assert (again.code, f"outbox entry {entry}" in again.err, asked.entries()) == (
        11,
        True,
        [entry],
    )
    assert f"request {codes(asked)[0]}\tleft: link to" in asked.resume("--list").out
    receiver.answers = lambda _: 204
    resumed = asked.resume("--output", "json")
    assert (resumed.code, resumed.json["outcome"], asked.entries()) == (0, "reminded", [])
    assert receiver.secrets == [read_receipt(asked.terminal.here / "acme.json").link] * 2


def test_a_name_in_the_config_file_stands_for_the_option(asked: Job) -> None:
    asked.terminal.file("c.toml", '[remind]\nsend = ["file:mail.txt"]\n')
    done = asked.run(
        "requests", "remind", "acme.json", SEALPIPE_CONFIG=str(asked.terminal.here / "c.toml")
    )
    assert (done.code, mails(asked)) == (0, ["mail.txt"])


def test_a_link_in_place_of_a_request_is_refused(asked: Job) -> None:
    link = asked.run("requests", "link", "acme.json").out.strip()
    for words in (
        ("link", link),
        ("remind", link, "--send", "file:mail.txt"),
        ("link", "acme.json", "--name", "acme"),
    ):
        assert asked.run("requests", *words).code == 2
