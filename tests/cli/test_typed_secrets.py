"""A secret is never typed on a command line: `text:` is refused where only secrets go, and warned about elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sealpipe import Client, UsageError
from sealpipe.flows.passcode import names_secret
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal, opened

PASSCODE = "hunter2"
WARNED = "looks like a secret: do not use text:"


@pytest.mark.parametrize(
    "words",
    [("share", "-f", "env:HOME"), ("share", "-f", "env:NO_SUCH_NAME"), ("request", "-a", "Token")],
    ids=" ".join,
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_passcode_that_is_typed_is_refused_before_anything(
    user: Terminal, service: RunningService, words: tuple[str, ...], form: str
) -> None:
    done = user.sealpipe(*words, "--passcode-from", f"text:{PASSCODE}", "--output", form)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "a passcode is a secret: do not use text:" in done.err
    assert "prompt:" in done.err
    assert PASSCODE not in done.err


@pytest.mark.parametrize("command", ["share", "request"])
def test_no_store_of_another_name_gets_round_it(user: Terminal, service: RunningService, command: str) -> None:
    user.file("config.toml", '[stores.words]\nplugin = "text"\n')
    what = ["-f", "env:HOME"] if command == "share" else ["-a", "Token"]
    done = user.sealpipe(
        command, *what, "--passcode-from", f"words:{PASSCODE}", SEALPIPE_CONFIG=str(user.here / "config.toml")
    )
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "a passcode is a secret" in done.err
    assert PASSCODE not in done.err


def test_in_python_a_passcode_is_itself_and_no_text_reference(service: RunningService) -> None:
    from sealpipe.flows.share import ShareOptions
    from sealpipe.reference import parse

    with Client(api_key=service.create_key(), base_url=service.base_url, link_base_url=service.link_base_url) as client:
        with pytest.raises(UsageError, match="a passcode is a secret"):
            ShareOptions(["env:HOME"], passcode=parse(f"text:{PASSCODE}"))
        share = client.share(["env:HOME"], passcode=PASSCODE, expires_in=timedelta(hours=1))
        assert opened(service, share.link.reveal(), PASSCODE)
        share = client.share([f"Password=text:{PASSCODE}"])
        assert WARNED in share.remarks[0]
        assert PASSCODE not in share.remarks[0]


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("Password=text:hunter2", 'the field "Password"'),
        ("API_KEY=text:hunter2", 'the field "API_KEY"'),
        ("Root=text:hunter2?type=password", 'the field "Root"'),
        ("text:hunter2?type=password", "a field of type password"),
    ],
)
def test_a_field_that_says_it_is_a_secret_is_warned_about(user: Terminal, field: str, named: str) -> None:
    for more in ([], ["--output", "json"], ["--dry-run"]):
        done = user.sealpipe("share", "-f", field, *more)
        assert done.code == 0
        assert f"{named} {WARNED}" in done.out + done.err
        assert "hunter2" not in done.err


@pytest.mark.parametrize("field", ["User=text:deploy", "text:my-password", "Key ID=text:AKIA", "Password=env:HOME"])
def test_what_says_nothing_of_the_kind_is_not(user: Terminal, field: str) -> None:
    done = user.sealpipe("share", "-f", field)
    assert (done.code, WARNED in done.err) == (0, False)


@pytest.mark.parametrize("label", [
    "password", "Password", "DB_PASSWORD", "db-password", "dbPassword", "Root password", "Passcode", "passphrase",
    "API token", "apiKey", "API_KEY", "AWS_SECRET_ACCESS_KEY", "client.secret", "Credentials", "PIN", "APIKey", "pwd",
])  # fmt: skip
def test_labels_of_secrets(label: str) -> None:
    assert names_secret(label)


@pytest.mark.parametrize("label", [
    "", "User", "User name", "Host", "Keyboard", "Tokenizer", "Public key", "AWS_ACCESS_KEY_ID", "Token URL", "Monkey",
    "Secretary", "Passenger", "ключ",
])  # fmt: skip
def test_labels_of_other_things(label: str) -> None:
    assert not names_secret(label)
