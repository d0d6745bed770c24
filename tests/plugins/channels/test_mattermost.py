"""mattermost: on a fake from Mattermost's public documentation; matterhook, a client of others,
works with it, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import matterhook
import pytest

from plugins.channels.fake_webhooks import MATTERMOST_HOOK, FakeMattermost, refusal
from plugins.channels.using import FRAGMENT, LINK, Using, everything_logged, passcode, share, told
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from support.fake_web import Fault, Reply, drop


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


def test_the_link_stands_where_no_preview_opens_it(mattermost: FakeMattermost) -> None:
    """Mattermost makes previews of links in a post's own text only."""
    using(mattermost).send("")
    [post] = mattermost.posts
    assert set(post) == {"text", "attachments"}
    assert post["text"] == ""
    [attachment] = post["attachments"]
    assert set(attachment) == {"fallback", "text"}
    assert f"<{LINK}>" in attachment["text"]
    assert FRAGMENT not in attachment["fallback"]


@pytest.mark.parametrize(
    "word", ["@channel", "@all", "@here", "@ann", "<!channel>", "<@U024BE7LH>", "~town-square"]
)
def test_a_title_mentions_nobody(mattermost: FakeMattermost, word: str) -> None:
    using(mattermost).send("", share(f"{word} {LINK}", title=word))
    [text] = mattermost.texts
    assert word not in text
    assert word not in text.replace("\\", "")


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


@pytest.mark.parametrize("to", ["#ops", "@ann", "ops,dev", "ops\n", "https://h/"])
def test_anything_else_is_refused_before_anything_is_sent(
    mattermost: FakeMattermost, to: str
) -> None:
    using(mattermost).fails(ReferenceValueError, to)
    assert not mattermost.asked


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal("web.incoming_webhook.disabled.app_error", 501), NotConfiguredError),
        (refusal("web.incoming_webhook.permissions.app_error", 403), AccessDeniedError),
        (refusal("app.channel.get.existing.app_error", 404), SecretNotFoundError),
        (refusal("web.incoming_webhook.split_props_length.app_error", 400), UnsupportedError),
        (refusal("api.post.create_webhook_post.creating.app_error", 500), UnknownOutcomeError),
        (refusal("something.else", 400), PluginError),
        (Reply(429, "limit exceeded", {"Retry-After": "1"}), UnavailableError),
        (Reply(302, "", {"Location": "/"}), NotConfiguredError),
        (Reply(200, "<html>"), UnknownOutcomeError),
        (drop, UnknownOutcomeError),
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


def test_neither_message_nor_address_is_shown(
    mattermost: FakeMattermost, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    everything_logged(caplog)
    found = using(mattermost)
    found.send("")
    mattermost.instead.append(refusal(f"{MATTERMOST_HOOK} {LINK}", 400))
    error = found.fails(PluginError, "")
    made = found.registry.channel("mattermost")
    shown = (
        caplog.text
        + "".join(capfd.readouterr())
        + told(error)
        + repr(made.settings)
        + repr(vars(made))
    )
    for secret in ("kq3canary", "/hooks", FRAGMENT):
        assert secret not in shown


def test_check_says_whether_one_is_set(mattermost: FakeMattermost) -> None:
    assert using(mattermost).check().ok
    assert not Using("mattermost", {}).check().ok
    assert not mattermost.asked
