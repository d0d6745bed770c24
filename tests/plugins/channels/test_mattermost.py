"""mattermost: on a fake from Mattermost's public documentation; matterhook, a client of others,
works with it, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import matterhook
import pytest

from plugins.channels.fake_webhooks import MATTERMOST_HOOK, FakeMattermost, refusal
from plugins.channels.using import LINK, Using, passcode, share
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from support.fake_web import Fault, Reply


@pytest.fixture
def mattermost() -> Iterator[FakeMattermost]:
    with FakeMattermost() as server:
        yield server


def using(mattermost: FakeMattermost, **more: str) -> Using:
    settings = {"webhook_url": mattermost.webhook_url, **more}
    return Using(
        "mattermost", {f"SEALPIPE_PLUGIN_MATTERMOST__{k.upper()}": v for k, v in settings.items()}
    )


def test_a_client_of_others_gets_on_with_the_fake(mattermost: FakeMattermost) -> None:
    key = MATTERMOST_HOOK.rpartition("/")[2]
    matterhook.Webhook(mattermost.base_url, key).send("hi", attachments=[{"text": "there"}])
    assert mattermost.texts == ["hi\nthere"]
    with pytest.raises(matterhook.incoming.HTTPError, match="Invalid webhook"):
        matterhook.Webhook(mattermost.base_url, "x").send("hi")


def test_a_passcode_is_exact(mattermost: FakeMattermost) -> None:
    using(mattermost).send("", passcode("a*b_@all <d>"))
    assert "`a*b_@all <d>`" in mattermost.texts[0]


def test_a_name_chooses_one_of_several_webhooks(mattermost: FakeMattermost) -> None:
    found = using(
        mattermost, webhooks=f"ops={mattermost.webhook_url} other={mattermost.base_url}/hooks/none"
    )
    found.send("ops")
    assert [found.canonical(to) for to in ("", "ops", "other")] == ["", "", "other"]
    assert (
        found.fails(NotConfiguredError, "dev").message
        == "no webhook dev is configured for Mattermost"
    )
    assert (
        found.fails(SecretNotFoundError, "other").message
        == "Mattermost does not know this webhook (400)"
    )
    assert len(mattermost.posts) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal("web.incoming_webhook.disabled.app_error", 501), NotConfiguredError),
        (refusal("web.incoming_webhook.permissions.app_error", 403), AccessDeniedError),
        (refusal("app.channel.get.existing.app_error", 404), SecretNotFoundError),
        (refusal("web.incoming_webhook.split_props_length.app_error", 400), UnsupportedError),
        (refusal("api.post.create_webhook_post.creating.app_error", 500), UnknownOutcomeError),
        (refusal("something.else", 400), PluginError),
        (Reply(200, "<html>"), UnknownOutcomeError),
    ],
)
def test_what_is_not_taken(
    mattermost: FakeMattermost, reply: Reply | Fault, kind: type[PluginError]
) -> None:
    mattermost.instead.append(reply)
    using(mattermost).fails(kind, "")
    assert len(mattermost.asked) == 1


def test_what_is_too_long_is_not_sent(mattermost: FakeMattermost) -> None:
    assert (
        "7000 characters"
        in using(mattermost).fails(UnsupportedError, "", share("long " * 1400 + LINK)).message
    )
    assert not mattermost.asked


def test_check_says_whether_one_is_set(mattermost: FakeMattermost) -> None:
    assert using(mattermost).check().ok
    assert not Using("mattermost", {}).check().ok
    assert not mattermost.asked
