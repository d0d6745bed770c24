"""Channels of other people, whatever they do; and the policies and observers that see who is sent
to.
"""

from __future__ import annotations

import json

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Done, Terminal

PLUGIN = """
from sealpipe.plugin import *

@hookimpl
def sealpipe_channels(register):
    register(ChannelInfo("pigeon", "a test", "pigeons:Pigeon"))

class Pigeon(Channel):
    def validate(self, to):
        if "," in to:
            raise ReferenceValueError("two pigeons", remedy="send one")

    def send(self, message, to):
        with open("flown", "a") as file:
            file.write(to + "\\n")
        {body}
"""


@pytest.fixture
def user(user: Terminal) -> Terminal:
    user.file(
        "site/pigeons-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: pigeons\nVersion: 1\n"
    )
    user.file("site/pigeons-1.dist-info/entry_points.txt", "[sealpipe]\npigeons = pigeons\n")
    user.environ |= {"PYTHONPATH": str(user.here / "site"), "DB_PASSWORD": "s3cret"}
    return user


def share(user: Terminal, body: str, *words: str) -> Done:
    user.file("site/pigeons.py", PLUGIN.format(body=body))
    return user.sealpipe(
        "share", "-f", "env:DB_PASSWORD", "--send", "pigeon:coop", "--views", "2", *words
    )


def flown(user: Terminal) -> int:
    file = user.here / "flown"
    return file.read_text().count("coop") if file.exists() else 0


@pytest.mark.parametrize("body", ["return Delivery('ring 7')", "return None"])
def test_a_third_party_channel_is_used(user: Terminal, body: str) -> None:
    done = share(user, body)
    assert (done.code, done.out, flown(user), user.outbox()) == (0, "", 1, [])


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyError(message.secret.reveal())",
        "raise PluginError('lost in a storm')",
        "raise UnknownOutcomeError('out of sight')",
        "raise SystemExit(message.text.reveal())",
    ],
)
def test_an_unknown_message_outcome_is_reported_and_not_resent(user: Terminal, body: str) -> None:
    done = share(user, body)
    assert (done.code, flown(user)) == (11, 1)
    assert "the link may not have reached pigeon:coop" in done.err
    assert "#1" not in done.err
    assert user.sealpipe("resume").code == 11
    assert flown(user) == 1


@pytest.mark.parametrize(
    "kind",
    [
        "BackendAuthError",
        "ReferenceValueError",
        "WriteConflictError",
        "AccessDeniedError",
        "NotConfiguredError",
        "SecretNotFoundError",
        "UnsupportedError",
    ],
)
def test_what_was_certainly_not_taken_is_sent_again_by_resume(user: Terminal, kind: str) -> None:
    done = share(user, f"raise {kind}('no', remedy='feed it')")
    assert (done.code, flown(user)) == (11, 1)
    assert "the link did not reach pigeon:coop: no (feed it)" in done.err
    user.file("site/pigeons.py", PLUGIN.format(body="return Delivery()"))
    assert user.sealpipe("resume").code == 0
    assert flown(user) == 2


def test_a_channel_that_is_away_is_asked_four_times(user: Terminal) -> None:
    assert share(user, "raise UnavailableError('moulting')").code == 11
    assert flown(user) == 4


def test_a_channel_that_refuses_its_recipient_costs_nothing(
    user: Terminal, service: RunningService
) -> None:
    done = share(user, "return Delivery()", "--send", "pigeon:{to}", "--param", "to=env:TO")
    assert (done.code, service.seen()) == (14, [])
    user.environ["TO"] = "a,b"
    done = share(
        user,
        "return Delivery()",
        "--send",
        "pigeon:{to}",
        "--param",
        "to=env:TO",
        "--output",
        "json",
    )
    assert (done.code, service.seen(), flown(user)) == (2, [], 0)
    assert done.error["message"] == "pigeon:{to}: two pigeons"
    assert done.error["remedy"] == "send one"


def test_link_and_passcode_are_compared_by_plugin_not_store(user: Terminal) -> None:
    user.environ["SEALPIPE_STORE__LOFT__PLUGIN"] = "pigeon"
    done = share(user, "return Delivery()", "--passcode-generate", "--passcode-to", "loft:Coop")
    assert (done.code, flown(user)) == (2, 0)
    assert "link and passcode would go to the same recipient, loft:Coop" in done.err


def test_a_policy_sees_every_recipient_and_an_observer_writes_them_down(
    user: Terminal, service: RunningService
) -> None:
    policy = user.file("policy.toml", 'recipients = ["pigeon:coop", "file:*/code"]\n')
    audit = user.here / "audit.jsonl"
    config = user.file("config.toml", f'[policy]\nfile = "{policy}"\n[audit]\nfile = "{audit}"\n')
    user.environ["SEALPIPE_CONFIG"] = str(config)
    assert share(user, "return Delivery()", "--send", "pigeon:elsewhere").code == 2
    assert (service.seen(), flown(user)) == ([], 0)
    done = share(user, "return Delivery()", "--passcode-generate", "--passcode-to", "file:code")
    assert done.code == 0, done
    rows = [
        row
        for line in audit.read_text().splitlines()
        if (row := json.loads(line))["event"] == "share"
    ]
    assert rows[-1]["recipients"] == ["pigeon:coop", f"file:{user.here}/code"]
