"""discord: on a fake from Discord's public documentation; discord_webhook, a client of others,
works with it, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from discord_webhook import DiscordWebhook

from plugins.channels.fake_webhooks import FakeDiscord, limited
from plugins.channels.using import LINK, Using, passcode, share
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from support.fake_web import Fault, Reply


@pytest.fixture
def discord() -> Iterator[FakeDiscord]:
    with FakeDiscord() as server:
        yield server


def using(discord: FakeDiscord, **more: str) -> Using:
    settings = {"webhook_url": discord.webhook_url, **more}
    return Using(
        "discord", {f"SEALPIPE_PLUGIN_DISCORD__{k.upper()}": v for k, v in settings.items()}
    )


def test_a_client_of_others_gets_on_with_the_fake(discord: FakeDiscord) -> None:
    """It waits as it is asked to, too."""
    discord.instead.append(limited(0.01))
    there = DiscordWebhook(discord.webhook_url, content="hi", flags=4, rate_limit_retry=True)
    assert there.execute().json()["id"].isdecimal()
    assert [(each["content"], each["flags"]) for each in discord.messages] == [("hi", 4)]
    assert DiscordWebhook(f"{discord.webhook_url}x", content="hi").execute().json()["code"] == 50027


def test_a_message_has_no_preview_and_mentions_nobody(discord: FakeDiscord) -> None:
    delivery = using(discord).send("")
    [message] = discord.messages
    assert (message["flags"], message["allowed_mentions"]) == (4, {"parse": []})
    assert set(message) == {"content", "flags", "allowed_mentions"}
    assert f"<{LINK}>" in message["content"]
    assert delivery.id.isdecimal()


def test_a_passcode_is_exact(discord: FakeDiscord) -> None:
    using(discord).send("", passcode("a*b_@here <d>"))
    assert "`a*b_@here <d>`" in discord.messages[0]["content"]


def test_an_address_with_a_thread_keeps_it(discord: FakeDiscord) -> None:
    using(discord, webhook_url=f"{discord.webhook_url}?thread_id=99").send("")
    assert discord.asked[0].query == {"thread_id": "99", "wait": "true"}


def test_a_name_chooses_one_of_several_webhooks(discord: FakeDiscord) -> None:
    found = using(
        discord, webhooks=f"ops={discord.webhook_url} other={discord.base_url}/api/webhooks/1/x"
    )
    found.send("ops")
    assert [found.canonical(to) for to in ("", "ops", "other")] == ["", "", "other"]
    assert (
        found.fails(NotConfiguredError, "dev").message == "no webhook dev is configured for Discord"
    )
    assert "no longer knows this webhook" in found.fails(SecretNotFoundError, "other").message
    wrong = using(discord, webhook_url=f"{discord.webhook_url}x")
    assert "refused the webhook's token" in wrong.fails(BackendAuthError, "").message


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(400, {"message": "Invalid Form Body", "code": 50035}), UnsupportedError),
        (Reply(403, {"message": "internal network error", "code": 40333}), AccessDeniedError),
        (Reply(429, "error code: 1015", {"Retry-After": "3"}), UnavailableError),
        (Reply(200, "<html>"), UnknownOutcomeError),
        (Reply(200, {"id": "x y"}), UnknownOutcomeError),
        (Reply(200, {"id": "9" * 21}), UnknownOutcomeError),
        (Reply(429, {"retry_after": 10**400}), UnavailableError),
    ],
)
def test_what_is_not_taken(
    discord: FakeDiscord, reply: Reply | Fault, kind: type[PluginError]
) -> None:
    discord.instead.append(reply)
    using(discord).fails(kind, "")
    assert len(discord.asked) == 1


@pytest.mark.parametrize(
    ("reply", "seconds"), [(limited(0.35), 0.35), (Reply(429, {"retry_after": "x"}), None)]
)
def test_it_says_how_long_to_wait(
    discord: FakeDiscord, reply: Reply, seconds: float | None
) -> None:
    discord.instead.append(reply)
    assert using(discord).fails(UnavailableError, "").retry_after == seconds


def test_what_is_too_long_is_not_sent(discord: FakeDiscord) -> None:
    assert (
        "2000 characters"
        in using(discord).fails(UnsupportedError, "", share("\U0001f511" * 1000 + LINK)).message
    )
    assert not discord.asked


def test_check_finds_each_webhook_and_posts_nothing(discord: FakeDiscord) -> None:
    assert using(discord).check().detail == "every webhook exists"
    with pytest.raises(SecretNotFoundError):
        using(discord, webhooks=f"other={discord.base_url}/api/webhooks/1/x").check()
    assert not Using("discord", {}).check().ok
    assert discord.messages == []
