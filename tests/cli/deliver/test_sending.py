"""`--send`, `--passcode-to`, `--param`: what goes to whom, and what is refused before anything is
sent.
"""

from __future__ import annotations

import re
import stat

import pytest

from sealpipe import webhooks
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Receiver
from support.terminal import ABROAD, Done, Terminal, opened

SIGNING = "whsec-0123456789abcdef"
SECRET = {"DB_PASSWORD": "s3cret", "SEALPIPE_PLUGIN_WEBHOOK__SECRET": SIGNING}


def share(user: Terminal, *words: str, **environ: str | None) -> Done:
    return user.sealpipe("share", "-f", "env:DB_PASSWORD", *words, **{**SECRET, **environ})


# -- what arrives -------------------------------------------------------------------------------


def test_a_link_that_is_sent_arrives_once_and_stands_nowhere_else(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    done = share(user, "--send", receiver.target, "--title", "Prod DB")
    (hook,) = receiver.hooks
    assert (done.code, done.out) == (0, "")
    assert f"sent the link to {receiver.target}\n" in done.err
    assert list(hook.json) == [
        "schema",
        "event",
        "short_code",
        "link",
        "title",
        "expires_at",
        "text",
    ]
    assert (hook.json["event"], hook.json["title"], hook.json["schema"]) == ("share", "Prod DB", 1)
    assert hook.json["link"] not in done.err
    assert hook.json["text"].count(hook.json["link"]) == 1
    assert opened(service, hook.json["link"]) == {"DB_PASSWORD": "s3cret"}
    assert user.outbox() == []


def test_our_own_verify_accepts_the_signature(user: Terminal, receiver: Receiver) -> None:
    assert share(user, "--send", receiver.target).code == 0
    (hook,) = receiver.hooks
    assert re.fullmatch(r"t=\d+,v1=[0-9a-f]{64}", hook.headers["x-sealpipe-signature"])
    webhooks.verify(hook.body, hook.headers["x-sealpipe-signature"], SIGNING)


def test_while_a_secret_is_replaced_both_sign_under_a_header_of_ones_own(
    user: Terminal, receiver: Receiver
) -> None:
    more = {
        "SEALPIPE_STORE__ACME_HOOKS__PLUGIN": "webhook",
        "SEALPIPE_STORE__ACME_HOOKS__SECRET": "the new one",
        "SEALPIPE_STORE__ACME_HOOKS__SECRET_PREVIOUS": "the old one",
        "SEALPIPE_STORE__ACME_HOOKS__HEADER": "X-Acme-Signature",
    }
    assert share(user, "--send", f"acme-hooks:{receiver.url}", **more).code == 0
    (hook,) = receiver.hooks
    for secret in ("the new one", "the old one"):
        webhooks.verify(hook.body, hook.headers["x-acme-signature"], secret)


def test_json_names_the_channels_and_holds_no_link(user: Terminal, receiver: Receiver) -> None:
    sent = ["--send", receiver.target, "--send", "file:link.txt", "--views", "2"]
    done = share(user, *sent, "--output", "json", "--receipt", "r.json")
    assert (done.json["link"], done.json["delivered"]) == (None, ["receipt", "webhook", "file"])
    assert (user.here / "link.txt").read_text() == receiver.secrets[0] + "\n"


def test_a_file_is_for_its_owner_only_and_never_written_over(
    user: Terminal, service: RunningService
) -> None:
    assert share(user, "--send", "file:link.txt").code == 0
    file = user.here / "link.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    link = file.read_text()
    before = len(service.seen())
    done = share(user, "--send", "file:link.txt")
    assert (done.code, done.out) == (2, "")
    assert "the path exists already" in done.err
    assert (file.read_text(), len(service.seen())) == (link, before)


def test_everybody_who_is_sent_the_link_has_a_view(user: Terminal, service: RunningService) -> None:
    """With one view for two, the second reader would find the link used up.

    A passcode needs no view.
    """
    refused = share(user, "--send", "file:a", "--send", "file:b")
    assert (refused.code, refused.out, service.seen(), list(user.here.iterdir())) == (2, "", [], [])
    assert "allow --views 2 (in Python views=2), or make a share for each of them" in refused.err
    for views in ("2", "unlimited"):
        done = share(user, "--send", f"file:a{views}", "--send", f"file:b{views}", "--views", views)
        assert (done.code, done.out) == (0, "")
        for name in (f"a{views}", f"b{views}"):
            assert opened(service, (user.here / name).read_text()) == {"DB_PASSWORD": "s3cret"}
    words = ["--passcode-generate", "--passcode-to", "file:code1", "--passcode-to", "file:code2"]
    assert share(user, "--send", "file:one", *words).code == 0


def test_the_passcode_goes_another_way_than_the_link_and_opens_the_share(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    done = share(
        user, "--passcode-generate", "--send", receiver.target, "--passcode-to", "file:code.txt"
    )
    (hook,) = receiver.hooks
    passcode = (user.here / "code.txt").read_text().rstrip("\n")
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"[a-z-]{20,}", passcode)
    assert opened(service, hook.json["link"], passcode) == {"DB_PASSWORD": "s3cret"}
    assert passcode not in hook.body.decode() + done.err
    assert "asked for a passcode" in hook.json["text"]


def test_a_passcode_of_ones_own_is_sent_too_and_the_link_is_printed(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    done = share(
        user, "--passcode-from", "env:CODE", "--passcode-to", receiver.target, CODE="open sesame"
    )
    (hook,) = receiver.hooks
    assert (hook.json["event"], hook.json["passcode"]) == ("passcode", "open sesame")
    assert "link" not in hook.json
    assert opened(service, done.out, "open sesame")
    assert done.out.partition("#")[2].strip() not in hook.body.decode()


def test_what_is_drawn_as_a_passcode_is_not_what_is_drawn_as_a_field(
    user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe(
        "share",
        "-f",
        "gen:passphrase",
        "--passcode-generate",
        "--passcode-to",
        "file:code.txt",
        **SECRET,
    )
    passcode = (user.here / "code.txt").read_text().rstrip("\n")
    assert passcode not in opened(service, done.out, passcode).values()


def test_in_a_gitlab_job_sending_the_link_is_a_way_out(user: Terminal, receiver: Receiver) -> None:
    assert (
        share(
            user,
            "--passcode-generate",
            "--passcode-to",
            receiver.target,
            GITLAB_CI="true",
            **ABROAD,
        ).code
        == 2
    )
    assert share(user, "--send", receiver.target, GITLAB_CI="true").code == 0
    assert len(receiver.hooks) == 1


def test_a_dry_run_tells_the_recipients_and_sends_nothing(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    words = [
        "--send",
        "file:{name}.txt",
        "--param",
        "name=env:WHO",
        "--passcode-generate",
        "--passcode-to",
    ]
    done = share(user, *words, receiver.target, "--dry-run", WHO="kim")
    assert done.code == 0
    assert {f"  link to file:{user.here}/kim.txt", f"  passcode to {receiver.target}"} <= set(
        done.out.splitlines()
    )
    assert (service.seen(), receiver.hooks) == ([], [])


# -- places in a target -------------------------------------------------------------------------


def test_a_value_fills_its_placeholder_and_is_not_on_stderr(
    user: Terminal, receiver: Receiver
) -> None:
    done = share(
        user, "--send", receiver.target + "/{who}?for={who}", "--param", "who=env:WHO", WHO="kim-77"
    )
    assert (done.code, receiver.hooks[0].target) == (0, "/hooks/7/kim-77?for=kim-77")
    assert "{who}" in done.err
    assert "kim-77" not in done.err


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("a@b.example\n", "ends with a line break"),
        ("a\nbcc: x@y.example", "contains a control character"),
        ("a\x1b[2J", "contains a control character"),
        ("a\u202eb", "contains a control character"),
        ("../../etc/passwd", "is not one plain name"),
        ("..", "is not one plain name"),
        ("a?cc=x", "is not one plain name"),
        (".bashrc", "is not one plain name"),
        ("-rf", "is not one plain name"),
        ("~root", "is not one plain name"),
        ("a,b", "is not one plain name"),
        ("{other}", "is not one plain name"),
        ("", "set but empty"),
        (None, "is not set"),
    ],
)
def test_a_value_that_would_be_more_than_a_value_gets_an_error_and_nothing_is_sent(
    user: Terminal, service: RunningService, receiver: Receiver, value: str | None, says: str
) -> None:
    for target in (receiver.target + "/{who}", "file:{who}"):
        done = share(user, "--send", target, "--param", "who=env:WHO", WHO=value)
        assert done.code == (14 if value in ("", None) else 2), done
        assert says in done.err
        assert not value or value not in done.err
    assert (service.seen(), receiver.hooks, list(user.here.iterdir())) == ([], [], [])


WRONG: dict[str, tuple[list[str], str, int]] = {
    "no channel": (["--send", "#ops"], "--send: the channel is not a reference", 2),
    "an unknown channel": (["--send", "pigeon:x"], "there is no channel named pigeon", 2),
    "a source that is no channel": (["--send", "env:X"], "there is no channel named env", 2),
    "no address": (["--send", "webhook:"], "not an http(s) URL", 2),
    "another machine over http": (["--send", "webhook:http://hooks.example/"], "unencrypted", 2),
    "a user in the address": (["--send", "webhook:https://a@hooks.example/"], "contains a user", 2),
    "a way up in the address": (["--send", "webhook:https://hooks.example/a/../b"], ". or ..", 2),
    "a folder": (["--send", "file:out/"], "names no file", 2),
    "a folder that does not exist": (["--send", "file:nowhere/x"], "its folder does not exist", 2),
    "the same twice": (["--send", "file:a", "--send", "file:./a", "--views=2"],
        "a recipient of the link twice", 2),
    "one view for two": (["--send", "file:a", "--send", "file:b"],
        "2 recipients, but can be opened only once", 2),
    "two views for three": (
        ["--views=2", "--send", "file:a", "--send", "file:b", "--send", "file:c"],
        "3 recipients, but can be opened only 2 times", 2,
    ),
    "link and passcode to one": (
        ["--passcode-generate", "--send", "file:a", "--passcode-to", "file:A"],
        "would go to the same recipient, file:A", 2,
    ),
    "a passcode for nobody": (["--passcode-generate"], "the generated passcode has no recipient",
        2),
    "a passcode of a source's for nobody": (["--passcode-from", "gen:pin"],
        "generated passcode has no recipient", 2),
    "two passcodes": (
        ["--passcode-generate", "--passcode-from", "env:CODE", "--passcode-to", "file:a"],
        "--passcode-from and --passcode-generate exclude each other", 2,
    ),
    "no passcode to send": (["--passcode-to", "file:a"], "there is no passcode to send", 2),
    "a place that nothing fills": (["--send", "file:{who}"], "--param who is missing", 2),
    "a value without a place": (["--send", "file:a", "--param", "who=text:b"],
        "no channel uses --param", 2),
    "a value without a channel": (["--param", "who=text:b"], "no channel uses --param", 2),
    "a value twice": (["--send", "file:{a}", "--param", "a=text:b", "--param", "a=text:c"], "twice",
        2),
    "a lone brace": (["--send", "file:{a"], "is not part of a placeholder", 2),
    "an empty place": (["--send", "file:{}"], "is not part of a placeholder", 2),
    "a text without a recipient": (["--message-template", "t.txt"],
        "--message-template needs --send", 2),
    "a text without the link": (["--send", "file:a", "--message-template", "none.txt"],
        "contains {link} 0 times", 2),
    "a text with an unknown place": (["--send", "file:a", "--message-template", "odd.txt"],
        "{password}", 2),
    "a text with the link twice": (["--send", "file:a", "--message-template", "two.txt"],
        "{link} 2 times", 2),
    "a text that is missing": (["--send", "file:a", "--message-template", "no.txt"],
        "cannot be read", 2),
    "a text that is none": (["--send", "file:a", "--message-template", "bytes.txt"], "is not UTF-8",
        2),
    "a text with a control character": (["--send", "file:a", "--message-template", "bell.txt"],
        "control", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_target_costs_nothing(user: Terminal, service: RunningService, name: str) -> None:
    texts = {
        "t": "{link}",
        "none": "hello",
        "odd": "{link} {password}",
        "two": "{link} {link}",
        "bell": "{link}\a",
    }
    for file, text in texts.items():
        user.file(f"{file}.txt", text)
    user.file("bytes.txt", b"\xff{link}")
    before = set(user.here.iterdir())
    words, says, code = WRONG[name]
    done = share(user, *words, CODE="open sesame")
    assert (done.code, done.out) == (code, ""), done
    assert says in done.err
    assert service.seen() == []
    assert set(user.here.iterdir()) == before


def test_a_channel_without_a_setting_fails_before_anything_is_sent(
    user: Terminal, service: RunningService, receiver: Receiver
) -> None:
    done = share(user, "--send", receiver.target, SEALPIPE_PLUGIN_WEBHOOK__SECRET=None)
    assert (done.code, service.seen()) == (14, [])
    assert "SEALPIPE_PLUGIN_WEBHOOK__SECRET" in done.err
    plain = {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": None, "SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED": "1"}
    assert share(user, "--send", receiver.target, **plain).code == 0
    assert "x-sealpipe-signature" not in receiver.hooks[0].headers


def test_an_invalid_recipient_fails_before_a_secret_is_fetched(user: Terminal) -> None:
    done = user.sealpipe("share", "-f", "file:nowhere", "--send", "file:out/", **SECRET)
    assert done.code == 2
    assert "names no file" in done.err


def test_braces_are_written_twice(user: Terminal) -> None:
    assert share(user, "--send", "file:{{a}}").code == 0
    assert [path.name for path in user.here.iterdir()] == ["{a}"]


# -- the text -----------------------------------------------------------------------------------


def test_a_text_of_ones_own_is_filled_once(user: Terminal, receiver: Receiver) -> None:
    user.file("text.txt", "Für {title}: {link} ({views} Mal, bis {expires}) {{so}}\r\n")
    words = ["--title", "{link} {x}", "--views", "3", "--expires-at", "2099-01-02T03:04:05Z"]
    done = share(user, "--send", receiver.target, "--message-template", "text.txt", *words)
    assert done.code == 0, done
    (hook,) = receiver.hooks
    link = hook.json["link"]
    assert (
        hook.json["text"]
        == f"Für {{link}} {{x}}: {link} (3 Mal, bis 2099-01-02 03:04 UTC) {{so}}\r\n"
    )


def test_a_text_knows_of_no_title_no_end_and_no_limit(user: Terminal, receiver: Receiver) -> None:
    user.file("text.txt", "[{title}] {link} {views} {expires}")
    share(
        user,
        "--send",
        receiver.target,
        "--message-template",
        "text.txt",
        "--no-expiry",
        "--views",
        "unlimited",
    )
    (hook,) = receiver.hooks
    assert hook.json["text"] == f"[] {hook.json['link']} unlimited never"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--expires-at", "2099-01-02T03:04:05Z"],
            "It can be opened once, until 2099-01-02 03:04 UTC.\n",
        ),
        (["--views", "5", "--no-expiry"], "It can be opened 5 times.\n"),
        (
            ["--views", "unlimited", "--expires-at", "2099-01-02T03:04:05Z"],
            "opened until 2099-01-02 03:04 UTC.\n",
        ),
        (["--title", "Stage\x07 DB"], "shared with you: Stage DB\n"),
        ([], "shared with you.\n"),
    ],
)
def test_our_own_text_tells_how_often_and_until_when(
    user: Terminal, receiver: Receiver, words: list[str], says: str
) -> None:
    assert share(user, "--send", receiver.target, *words).code == 0
    assert says in receiver.hooks[0].json["text"]
