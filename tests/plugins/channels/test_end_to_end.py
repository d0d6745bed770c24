"""`sealpipe share --send` to a real mail server and to the fakes: processes, sockets, TLS, nothing
in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support import (
    fake_chat,
    fake_github,
)
from support.fake_chat import FakeSlack
from support.fake_github import FakeGitHub
from support.fake_web import drop_after
from support.mailbox import USER, Mailbox
from support.terminal import Done, Terminal, created, opened


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    with Mailbox(tmp_path) as server:
        yield server


@pytest.fixture
def mailing(user: Terminal, mailbox: Mailbox) -> Terminal:
    """A user whose settings are at the service and at the mail server."""
    user.environ |= {
        **mailbox.environ("CI <ci@acme.example>"),
        "DB_PASSWORD": "s3cret",
    }
    return user


def share(user: Terminal, recipient: str) -> Done:
    words = (
        "share",
        "-f",
        "Password=env:DB_PASSWORD",
        "--send",
        "email:{to}",
        "--param",
        "to=env:RECIPIENT",
    )
    return user.sealpipe(*words, RECIPIENT=recipient)


def test_a_link_is_mailed_and_opens(
    mailing: Terminal, mailbox: Mailbox, service: RunningService
) -> None:
    done = share(mailing, "ann@example.com")
    assert (done.code, done.out) == (0, ""), done
    [got] = mailbox.received
    assert (got.recipients, got.user, got.encrypted) == (["ann@example.com"], USER, True)
    text, page = [part.get_content() for part in got.mail.iter_parts()]
    [link] = [line for line in text.splitlines() if line.startswith("http")]
    assert f'<a href="{link}">' in page
    assert link.partition("#")[2] not in done.err
    assert opened(service, link) == {"Password": "s3cret"}
    assert mailing.outbox() == []


def test_a_title_that_an_attacker_wrote_is_text(
    mailing: Terminal, mailbox: Mailbox, service: RunningService
) -> None:
    title = (
        "v1 =?utf-8?q?=0D=0AContent-Type:_text/html=0D=0ABcc:_eve@evil.example=0D=0A=0D=0A"
        "<form_action=3Dhttps://evil.example>?="
    )
    words = ("share", "-f", "env:DB_PASSWORD", "--title", title, "--send", "email:ann@example.com")
    done = mailing.sealpipe(*words)
    assert (done.code, done.out) == (0, ""), done
    [got] = mailbox.received
    assert got.recipients == ["ann@example.com"]
    assert [name for name, _ in got.mail.items()] == [
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version",
        "Content-Type",
    ]  # fmt: skip
    assert got.mail["Subject"] == f"A secret for you: {title}"
    text, page = [part.get_content() for part in got.mail.iter_parts()]
    assert "<form" not in page
    [link] = [line for line in text.splitlines() if line.startswith("http")]
    assert opened(service, link) == {"DB_PASSWORD": "s3cret"}


@pytest.mark.parametrize(
    "recipient",
    [
        "ann@example.com,eve@evil.example",
        "ann@example.com\nBcc: eve@evil.example",
        "ann@example.com\r\n",
        "ann@example.com?cc=eve@evil.example",
        "Ann <ann@example.com>",
        "ann@example.com{to}",
        "slack:#ops",
    ],
)
def test_a_recipient_that_is_more_than_one_address_changes_nothing(
    mailing: Terminal, mailbox: Mailbox, service: RunningService, recipient: str
) -> None:
    before = len(service.seen())
    done = share(mailing, recipient)
    assert (done.code, done.out) == (2, ""), done
    assert "evil" not in done.err
    assert mailbox.received == []
    assert (len(service.seen()), mailing.outbox()) == (before, [])


def test_a_mailbox_that_is_not_there_keeps_the_link_for_resume(
    mailing: Terminal, mailbox: Mailbox, service: RunningService
) -> None:
    mailbox.answers.rcpt = "550 5.1.1 unknown"
    done = share(mailing, "ann@example.com")
    assert done.code == 11, done
    assert "has no mailbox ann@example.com (550)" in done.err
    mailbox.answers.rcpt = ""
    finished = mailing.sealpipe("resume")
    assert finished.code == 0, finished
    assert len(mailbox.received) == len(created(service)) == 1
    assert mailing.outbox() == []


def test_a_comment_whose_answer_was_lost_is_there_once(
    user: Terminal, service: RunningService
) -> None:
    with FakeGitHub() as hub:
        user.environ |= {
            "GITHUB_API_URL": hub.base_url,
            "GITHUB_TOKEN": fake_github.TOKEN,
            "DB_PASSWORD": "s3cret",
        }
        hub.instead += [None, None, drop_after]
        done = user.sealpipe(
            "share",
            "-f",
            "env:DB_PASSWORD",
            "--send",
            "github-comment:{r}#7",
            "--param",
            "r=text:acme/app",
        )
        assert (done.code, done.out) == (0, ""), done
        [body] = hub.bodies()
    [line] = [line for line in body.splitlines() if line.startswith("<")]
    assert opened(service, line.strip("<> ")) == {"DB_PASSWORD": "s3cret"}


def test_link_and_passcode_go_two_ways_and_never_one(
    mailing: Terminal, mailbox: Mailbox, service: RunningService
) -> None:
    words = (
        "share",
        "-f",
        "env:DB_PASSWORD",
        "--passcode-generate",
        "--send",
        "email:ann@example.com",
        "--passcode-to",
    )
    with FakeSlack() as slack:
        mailing.environ |= {
            "SLACK_BOT_TOKEN": fake_chat.TOKEN,
            "SEALPIPE_PLUGIN_SLACK__API_URL": slack.api_url,
        }
        done = mailing.sealpipe(*words, "slack:@U024BE7LH")
        assert (done.code, done.out) == (0, ""), done
        elements = slack.messages[0]["blocks"][0]["elements"][0]["elements"]
    [code] = [element["text"] for element in elements if "style" in element]
    text = next(mailbox.received[0].mail.iter_parts()).get_content()
    [link] = [line for line in text.splitlines() if line.startswith("http")]
    assert code not in mailbox.received[0].content.decode()
    assert opened(service, link, code) == {"DB_PASSWORD": "s3cret"}
    for same in ("email:ann@example.com", "email:Ann@Example.COM"):
        done = mailing.sealpipe(*words, same)
        assert (done.code, len(mailbox.received)) == (2, 1), done
