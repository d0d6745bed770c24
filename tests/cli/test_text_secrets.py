"""A secret is never typed on a command line: `text:` is refused where only secrets go, and warned
about elsewhere.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from sealpipe import Client, UsageError
from sealpipe.sources.text_secrets import names_secret
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal, opened

PASSCODE = "hunter2"
WARNED = "looks like a secret: do not use text:"


def test_in_python_a_passcode_is_itself_and_no_text_reference(service: RunningService) -> None:
    from sealpipe.reference import parse
    from sealpipe.share.options import plan_share

    with Client(
        api_key=service.create_key(), base_url=service.base_url, link_base_url=service.link_base_url
    ) as client:
        with pytest.raises(UsageError, match="a passcode is a secret"):
            plan_share(["env:HOME"], passcode=parse(f"text:{PASSCODE}"))
        share = client.share(["env:HOME"], passcode=PASSCODE, expires_in=timedelta(hours=1))
        assert opened(service, share.link.reveal(), PASSCODE)
        share = client.share([f"Password=text:{PASSCODE}"])
        assert WARNED in share.remarks[0]
        assert PASSCODE not in share.remarks[0]


@pytest.mark.parametrize("label", [
    "password", "Password", "DB_PASSWORD", "db-password", "dbPassword", "Root password", "Passcode",
    "passphrase", "API token", "apiKey", "API_KEY", "AWS_SECRET_ACCESS_KEY", "client.secret",
    "Credentials", "PIN", "APIKey", "pwd",
])  # fmt: skip
def test_labels_of_secrets(label: str) -> None:
    assert names_secret(label)


@pytest.mark.parametrize("label", [
    "", "User", "User name", "Host", "Keyboard", "Tokenizer", "Public key", "AWS_ACCESS_KEY_ID",
    "Token URL", "Monkey", "Secretary", "Passenger", "ключ",
])  # fmt: skip
def test_labels_of_other_things(label: str) -> None:
    assert not names_secret(label)


def test_on_a_terminal_a_text_without_a_label_is_noted_to_be_in_the_shells_history(
    user: Terminal,
) -> None:
    noted = (
        "note: the shell's history stores what stands after text:. For a secret, name where it "
        "lives"
    )
    assert noted in " ".join(user.on_a_terminal("share", "-f", f"text:{PASSCODE}").split())
    assert "history" not in user.on_a_terminal("share", "-f", "User=text:deploy"), (
        "its label says what it is"
    )
    assert "history" not in user.on_a_terminal("share", "-f", "env:LANG")
    assert "history" not in user.sealpipe("share", "-f", f"text:{PASSCODE}").err, (
        "no person sees it"
    )
