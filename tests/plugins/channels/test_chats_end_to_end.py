"""`share --send` to Mattermost and Discord: a handover each, and what goes wrong told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugins.channels.fake_webhooks import (
    DISCORD_HOOK,
    MATTERMOST_HOOK,
    FakeDiscord,
    FakeMattermost,
    refusal,
)
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.fake_web import Fault, Reply, hang
from support.leaks import Detector
from support.ports import silent_port
from support.strace import watch
from support.terminal import Terminal, opened
from support.wires import Intercepting

SHARE = ("share", "-f", "env:DB_PASSWORD")
LINK = re.compile(r"<(http[^>]*)>")


@pytest.fixture
def mattermost() -> Iterator[FakeMattermost]:
    with FakeMattermost() as server:
        yield server


@pytest.fixture
def discord() -> Iterator[FakeDiscord]:
    with FakeDiscord() as server:
        yield server


@pytest.fixture
def chatting(user: Terminal, mattermost: FakeMattermost, discord: FakeDiscord) -> Terminal:
    """A user with a webhook of each."""
    user.environ |= {
        "MATTERMOST_WEBHOOK_URL": mattermost.webhook_url,
        "DISCORD_WEBHOOK_URL": discord.webhook_url,
    }
    user.environ["DB_PASSWORD"] = "s3cret"
    return user


def test_the_link_goes_to_one_and_its_passcode_to_the_other(
    chatting: Terminal, mattermost: FakeMattermost, discord: FakeDiscord, service: RunningService
) -> None:
    done = chatting.sealpipe(
        *SHARE, "--passcode-generate", "--send", "mattermost:", "--passcode-to", "discord:"
    )
    assert (done.code, done.out) == (0, ""), done
    [post], [message] = mattermost.texts, discord.messages
    [link], [code] = LINK.findall(post), re.findall("`([^`]*)`", message["content"])
    assert opened(service, link, code) == {"DB_PASSWORD": "s3cret"}
    assert code not in post
    assert link.partition("#")[2] not in message["content"]


def test_a_link_goes_to_discord(
    chatting: Terminal, discord: FakeDiscord, service: RunningService
) -> None:
    discord.instead.append(Reply(429, {"retry_after": 0.01}))
    done = chatting.sealpipe(*SHARE, "--send", "discord:")
    assert (done.code, done.out) == (0, ""), done
    assert opened(service, LINK.findall(discord.messages[0]["content"])[0]) == {
        "DB_PASSWORD": "s3cret"
    }


HOST = "chat.example"
Cases = dict[str, tuple[Reply | Fault | None, dict[str, str]]]


@pytest.mark.parametrize("name", ["mattermost", "discord"])
def test_link_and_address_show_nowhere_else(
    name: str, chatting: Terminal, mattermost: FakeMattermost, discord: FakeDiscord
) -> None:
    fake = mattermost if name == "mattermost" else discord
    for reply in (None, Reply(400), Reply(500)):
        fake.instead += [] if reply is None else [reply]
        seen = watch(
            chatting, [*SEALPIPE, *SHARE, "--send", f"{name}:", "--views", "unlimited", "--debug"]
        )
        assert seen.done.code == (11 if reply else 0), seen.done
        [link] = LINK.findall(str(fake.asked[-1].json))
        secrets = {
            "link": link.partition("#")[2],
            "address": MATTERMOST_HOOK[-26:],
            "token": DISCORD_HOOK[-27:],
        }
        detector = Detector({each: value.encode() for each, value in secrets.items()})
        mine = f"ost: 127.0.0.1:{fake.port}\r\n".encode()
        places = [
            (where, data)
            for where, data in seen.places()
            if not (where.startswith("TCP") and mine in data)
        ]
        assert {found for where, data in places for found in detector.find(data, where)} == set()
        assert seen.executed == []


@pytest.fixture
def failures(
    mattermost: FakeMattermost, discord: FakeDiscord, tmp_path: Path
) -> Iterator[dict[str, Cases]]:
    """Of each channel, what its server does and the environment.

    A webhook needs no library, and no login expires.

    In place of these stand webhooks that are switched off, posts that are refused, and rate limits.
    """
    with ExitStack() as stack:
        nobody = f"http://127.0.0.1:{silent_port()}"

        def common(fake: FakeMattermost | FakeDiscord, variable: str, path: str) -> Cases:
            proxy = stack.enter_context(Intercepting(tmp_path, {HOST: fake.port}))
            behind = {variable: f"https://{HOST}{path}"}
            return {
                "unreachable": (None, {variable: nobody + path}),
                "a proxy's login": (None, {**behind, "HTTPS_PROXY": proxy.url("")}),
                "unknown CA": (None, {**behind, "HTTPS_PROXY": proxy.url()}),
            }

        yield {
            "mattermost": {
                **common(mattermost, "MATTERMOST_WEBHOOK_URL", MATTERMOST_HOOK),
                "wrong path": (None, {"MATTERMOST_WEBHOOK_URL": f"{mattermost.webhook_url}x"}),
                "denied": (refusal("web.incoming_webhook.permissions.app_error", 403), {}),
                "wrong account": (refusal("web.incoming_webhook.user.app_error", 403), {}),
                "switched off": (refusal("web.incoming_webhook.disabled.app_error", 501), {}),
                "timeout": (hang, {}),
                "refused": (refusal("web.incoming_webhook.text.app_error", 400), {}),
            },
            "discord": {
                **common(discord, "DISCORD_WEBHOOK_URL", DISCORD_HOOK),
                "wrong path": (
                    None,
                    {"DISCORD_WEBHOOK_URL": f"{discord.base_url}/api/webhooks/1/x"},
                ),
                "denied": (Reply(403, {"code": 40333}), {}),
                "wrong account": (None, {"DISCORD_WEBHOOK_URL": f"{discord.webhook_url}x"}),
                "timeout": (hang, {}),
                "refused": (Reply(400, {"code": 50035}), {}),
                "led away": (Reply(302, "", {"Location": "/"}), {}),
            },
        }


@pytest.mark.parametrize("name", ["mattermost", "discord"])
def test_nine_failures_are_told_apart(
    name: str,
    failures: dict[str, Cases],
    mattermost: FakeMattermost,
    discord: FakeDiscord,
    chatting: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = mattermost if name == "mattermost" else discord
    told: dict[str, str] = {}
    for failure, (reply, environ) in failures[name].items():
        fake.instead += [] if reply is None else [reply]
        with monkeypatch.context() as patched:
            if failure == "timeout":  # short for no other: on a busy machine a server may be late
                patched.setattr("sealpipe.network.plugin_network.TIMEOUT", 0.3)
            done = chatting.sealpipe(*SHARE, "--send", f"{name}:", "--output", "json", **environ)
        assert (done.code, done.json["delivered"]) == (11, []), (failure, done)
        told[failure] = done.error["message"].partition(": ")[2]
        assert [
            value
            for value in ("s3cret", "canary", "Canary", Intercepting.password)
            if value in done.err
        ] == []
    reasons, remedies = zip(
        *(each.rstrip(")").rpartition(" (")[::2] for each in told.values()), strict=True
    )
    assert len(set(reasons)) == len(set(remedies)) == 9, told
