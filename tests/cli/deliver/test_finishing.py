"""What did not get out: told, kept, and finished by `resume`; never a second message unless
somebody says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.fake_web import Asked, Receiver
from support.ports import silent_port
from support.terminal import Done, Terminal, created, opened

SECRET = {"DB_PASSWORD": "s3cret"}


@pytest.fixture
def user(user: Terminal) -> Terminal:
    user.environ["SEALPIPE_PLUGIN_WEBHOOK__SECRET"] = "whsec-0123456789abcdef"
    return user


@pytest.fixture
def closed() -> str:
    """A target where nobody listens."""
    return f"webhook:http://127.0.0.1:{silent_port()}/"


def share(user: Terminal, *words: str, **environ: str | None) -> Done:
    return user.sealpipe("share", "-f", "env:DB_PASSWORD", *words, **{**SECRET, **environ})


def kept(user: Terminal, done: Done) -> str:
    """The id of the one entry that an undelivered share left, which it named."""
    (entry,) = user.outbox()
    assert done.code == 11, done
    assert f"`sealpipe resume {entry.stem}" in done.err
    return entry.stem


def left(user: Terminal) -> list[tuple[str, str, str]]:
    """What `resume --list` tells."""
    (entry,) = user.sealpipe("resume", "--list", "--output", "json").json["entries"]
    return [(each["what"], each["to"], each["state"]) for each in entry["left"]]


def answers(*statuses: int | None) -> Callable[[Asked], int | None]:
    """One status after another, then success."""
    waiting = list(statuses)
    return lambda _: waiting.pop(0) if waiting else 204


# -- certainly not taken ------------------------------------------------------------------------


def test_a_message_that_was_refused_is_sent_by_resume_and_the_others_are_out(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    receiver.answers = answers(403)
    done = share(
        user,
        "--send",
        receiver.target,
        "--send",
        "file:link.txt",
        "--views",
        "2",
        "--receipt",
        "r.json",
    )
    kept(user, done)
    assert "sent the link to file:link.txt" in done.err
    assert (
        f"the link did not reach {receiver.target}: the webhook refused the message (403)"
        in done.err
    )
    assert (user.here / "r.json").exists()
    assert left(user)[0] == ("link", receiver.target, "failed")
    link = (user.here / "link.txt").read_text()
    done = user.sealpipe("resume", "--output", "json")
    assert (done.code, done.json["delivered"]) == (0, ["receipt", "webhook", "file"])
    assert receiver.secrets == [link.rstrip("\n")] * 2
    assert len(created(service)) == 1
    assert user.outbox() == []


def test_a_closed_port_is_retried_and_then_reported(user: Terminal, closed: str) -> None:
    done = share(user, "--send", closed)
    kept(user, done)
    assert f"the link did not reach {closed}: the webhook at 127.0.0.1:" in done.err
    assert "connection refused" in done.err
    assert left(user) == [("link", closed, "failed")]


def test_who_asks_to_come_back_is_asked_again_at_once(user: Terminal, receiver: Receiver) -> None:
    receiver.answers = answers(429, 429)
    assert share(user, "--send", receiver.target).code == 0
    assert len(receiver.hooks) == 3
    assert len(set(receiver.secrets)) == 1


def test_the_link_is_printed_though_its_passcode_did_not_get_out(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    receiver.answers = answers(404)
    done = share(user, "--passcode-generate", "--passcode-to", receiver.target)
    kept(user, done)
    assert done.out.startswith(service.link_base_url)
    again = user.sealpipe("resume")
    assert (again.code, again.out) == (0, done.out)
    assert opened(service, again.out, receiver.secrets[-1]) == SECRET


# -- perhaps taken ------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, 500, 502, 302, 303])
def test_a_message_that_may_have_arrived_is_repeated_only_on_request(
    user: Terminal, service: RunningService, receiver: Receiver, answer: int | None
) -> None:
    receiver.answers = answers(answer)
    done = share(user, "--send", receiver.target)
    entry = kept(user, done)
    assert f"the link may not have reached {receiver.target}" in done.err
    assert f"`sealpipe resume {entry} --resend`" in done.err
    assert left(user) == [("link", receiver.target, "sending")]
    for _ in range(2):
        done = user.sealpipe("resume")
        assert (done.code, done.out) == (11, "")
        assert "the message may have arrived" in done.err
        assert "--discard` only removes the entry, and the share stays" in done.err
        assert f"`sealpipe resume {entry} --resend`" in done.err
    assert len(receiver.hooks) == 1
    done = user.sealpipe("resume", entry, "--resend")
    assert (done.code, done.out, user.outbox()) == (0, "", [])
    first, second = receiver.secrets
    assert first == second
    assert opened(service, first) == SECRET
    assert len(created(service)) == 1


def test_a_file_that_may_be_there_is_finished_without_asking(
    user: Terminal, receiver: Receiver
) -> None:
    receiver.answers = answers(403)
    kept(user, share(user, "--send", "file:link.txt", "--send", receiver.target, "--views", "2"))
    link = (user.here / "link.txt").read_text()
    assert user.sealpipe("resume").code == 0
    assert (user.here / "link.txt").read_text() == link


def test_resume_sends_from_another_folder_to_the_same_file(
    user: Terminal, service: RunningService
) -> None:
    user.file("out/.keep", "")
    (user.here / "out").chmod(0o700)
    done = user.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *SEALPIPE, "share", "-f", "env:DB_PASSWORD",
            "--passcode-generate",
         "--passcode-to", "file:out/code"],
        environ=SECRET,
    )  # fmt: skip
    assert done.code == 11
    code = (user.here / "out/code").read_text()
    (user.here / "out/code").unlink()
    done = user.sealpipe("resume", XDG_CACHE_HOME="elsewhere")
    # What is out stays out: the file was somebody's to take away.
    assert (done.code, (user.here / "out/code").exists()) == (0, False)
    assert opened(service, done.out, code.rstrip("\n")) == SECRET


def test_something_else_in_a_files_place_is_not_written_over(
    user: Terminal, receiver: Receiver, service: RunningService
) -> None:
    """It came to be there between the check and the writing."""

    def answer(hook: Asked) -> int:
        user.file("link.txt", "precious")
        assert hook
        return 204

    receiver.answers = answer
    done = share(user, "--send", receiver.target, "--send", "file:link.txt", "--views", "2")
    kept(user, done)
    assert "the path exists with other content" in done.err
    assert (user.here / "link.txt").read_text() == "precious"
    (user.here / "link.txt").unlink()
    assert user.sealpipe("resume").code == 0
    assert opened(service, (user.here / "link.txt").read_text()) == SECRET
    assert len(receiver.hooks) == 1


# -- the entry ----------------------------------------------------------------------------------


def test_the_list_tells_what_is_left_and_without_the_credential_only_that_there_is_something(
    user: Terminal, receiver: Receiver
) -> None:
    receiver.answers = answers(None)
    words = ["--passcode-generate", "--passcode-to", "file:code.txt", "--param", "who=env:WHO"]
    entry = kept(user, share(user, "--send", receiver.target + "?for={who}", *words, WHO="kim-77"))
    done = user.sealpipe("resume", "--list")
    assert done.out.startswith(f"{entry}\t")
    assert done.out.rstrip("\n").endswith(f"left: link to {receiver.target}?*** (sending)")
    assert "kim-77" not in done.out
    assert user.sealpipe("resume", "--list", SEALPIPE_API_KEY=None).out.count("\t") == 2


def test_the_link_of_an_expired_share_is_not_sent(user: Terminal, receiver: Receiver) -> None:
    receiver.answers = answers(*[403] * 1000)
    kept(user, share(user, "--send", receiver.target, "--expires-in", "2s"))
    done = user.sealpipe("resume")
    while "expired before" not in done.err:
        assert len(receiver.hooks) < 200
        time.sleep(0.1)
        done = user.sealpipe("resume")
    assert "--discard" in done.err
    sent = len(receiver.hooks)
    assert user.sealpipe("resume", "--resend").code == 11
    assert len(receiver.hooks) == sent


def test_an_unusable_channel_is_reported_and_the_others_send(
    user: Terminal, receiver: Receiver
) -> None:
    receiver.answers = answers(403)
    kept(user, share(user, "--send", receiver.target))
    done = user.sealpipe("resume", SEALPIPE_PLUGIN_WEBHOOK__SECRET=None)
    kept(user, done)
    assert "SEALPIPE_PLUGIN_WEBHOOK__SECRET" in done.err
    assert left(user) == [("link", receiver.target, "failed")]


def test_json_names_what_is_out_and_the_error_comes_last(
    user: Terminal, receiver: Receiver
) -> None:
    receiver.answers = answers(403)
    done = share(
        user,
        "--send",
        receiver.target,
        "--send",
        "file:link.txt",
        "--views",
        "2",
        "--output",
        "json",
    )
    assert (done.code, done.json["link"], done.json["delivered"]) == (11, None, ["file"])
    assert done.error["type"] == "DeliveryError"
    assert done.error["outbox_id"] == user.outbox()[0].stem


def test_a_share_that_was_never_made_sends_nothing(user: Terminal, receiver: Receiver) -> None:
    nowhere = {
        "SEALPIPE_BASE_URL": f"http://127.0.0.1:{silent_port()}/v1",
        "SEALPIPE_DEADLINE": "30s",
    }
    assert share(user, "--send", receiver.target, **nowhere).code == 10
    assert (receiver.hooks, user.outbox()) == ([], [])
