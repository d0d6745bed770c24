"""slack: on a fake from Slack's public documentation; slack_sdk, Slack's own client, gets on with
the same fake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient

from plugins.channels.using import (
    FRAGMENT,
    LINK,
    Using,
    passcode,
    share,
    told,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from support.fake_chat import TOKEN, FakeSlack
from support.fake_web import Reply


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as server:
        yield server


def bot(slack: FakeSlack, token: str | None = TOKEN, **more: str) -> Using:
    settings = {"api_url": slack.api_url, "token": token, **more}
    return Using(
        "slack",
        {f"SEALPIPE_PLUGIN_SLACK__{k.upper()}": v for k, v in settings.items() if v is not None},
    )


def hook(slack: FakeSlack, url: str = "", webhooks: str | None = None) -> Using:
    environ = {"SLACK_WEBHOOK_URL": url or slack.webhook_url}
    return Using(
        "slack", environ if webhooks is None else {"SEALPIPE_PLUGIN_SLACK__WEBHOOKS": webhooks}
    )


class TestSlacksOwnClient:
    """The proof of the fake: slack_sdk works with it, and what it posts is kept as what we post."""

    def test_it_posts_and_our_message_is_kept_in_the_same_form(self, slack: FakeSlack) -> None:
        theirs = WebClient(TOKEN, base_url=f"{slack.api_url}/")
        assert theirs.auth_test()["user"] == "bot"
        done = theirs.chat_postMessage(
            channel="#ops", text="hello", unfurl_links=False, unfurl_media=False
        )
        ours = bot(slack).send("#ops")
        assert ours.id == f"{done['channel']}/1503435956.000002"
        assert [message["channel"] for message in slack.messages] == ["C024BE91L", "C024BE91L"]
        first, second = slack.asked[1:]
        assert first.path == second.path
        for name in ("authorization", "content-type"):
            assert first.headers[name].replace(" ", "") == second.headers[name].replace(" ", "")
        assert set(first.json) <= set(second.json)

    @pytest.mark.parametrize("error", ["channel_not_found", "not_in_channel"])
    def test_it_is_refused_with_the_same_words(self, slack: FakeSlack, error: str) -> None:
        with pytest.raises(SlackApiError) as caught:
            WebClient(TOKEN, base_url=f"{slack.api_url}/").chat_postMessage(
                channel="#nosuch" if error == "channel_not_found" else "#secret", text="x"
            )
        assert caught.value.response["error"] == error

    def test_its_webhook_client_posts(self, slack: FakeSlack) -> None:
        done = WebhookClient(slack.webhook_url).send(text="hello")
        assert (done.status_code, done.body) == (200, "ok")
        assert slack.messages[0]["text"] == "hello"


class TestTheMessage:
    """What stands in Slack."""

    def test_its_text_is_escaped_for_those_who_see_no_blocks(self, slack: FakeSlack) -> None:
        bot(slack).send("#ops", share(f"<!channel> <@U024BE7LH> a & b\n{LINK}"))
        assert (
            slack.messages[0]["text"] == f"&lt;!channel&gt; &lt;@U024BE7LH&gt; a &amp; b\n<{LINK}>"
        )

    def test_no_preview_opens_the_link(self, slack: FakeSlack) -> None:
        bot(slack).send("#ops")
        hook(slack).send("")
        assert [(m["unfurl_links"], m["unfurl_media"]) for m in slack.messages] == [
            (False, False)
        ] * 2

    @pytest.mark.parametrize("code", ["a*b_c~d <e>&", "with ` a tick", "1234"])
    def test_a_passcode_is_exact(self, slack: FakeSlack, code: str) -> None:
        bot(slack).send("@U024BE7LH", passcode(code))
        elements = slack.messages[0]["blocks"][0]["elements"][0]["elements"]
        assert {"type": "text", "text": code, "style": {"code": True}} in elements
        assert slack.messages[0]["channel"] == "D024BFF1M"


class TestTheRecipient:
    """One channel, one member, one webhook."""

    @pytest.mark.parametrize("to", ["#ops", "C024BE91L", "@U024BE7LH", "U024BE7LH"])
    def test_a_channel_or_a_member(self, slack: FakeSlack, to: str) -> None:
        assert bot(slack).send(to).id
        assert len(slack.messages) == 1

    def test_one_member_has_one_spelling(self, slack: FakeSlack) -> None:
        assert (
            bot(slack).canonical("U024BE7LH") == bot(slack).canonical("@U024BE7LH") == "@U024BE7LH"
        )

    def test_webhooks_by_name(self, slack: FakeSlack) -> None:
        named = hook(slack, webhooks=f"ops={slack.webhook_url}\nold={slack.webhook_url}x")
        named.send("ops")
        assert len(slack.messages) == 1
        error = named.fails(SecretNotFoundError, "old")
        assert error.message == "Slack no longer knows this webhook (no_service)"
        assert (
            "no webhook dev is configured for Slack"
            in named.fails(NotConfiguredError, "dev").message
        )
        assert named.fails(ReferenceValueError, "").message.startswith("the recipient is missing")

    def test_two_names_of_one_webhook_are_one_recipient(self, slack: FakeSlack) -> None:
        url = slack.webhook_url
        environ = {
            "SEALPIPE_PLUGIN_SLACK__WEBHOOKS": f"b={url} a={url} c={url}x",
            "SLACK_WEBHOOK_URL": f"{url}x",
        }
        found = Using("slack", environ)
        assert [found.canonical(to) for to in ("a", "b", "c", "")] == ["a", "a", "", ""]

    def test_a_webhook_posts_to_its_own_channel_only(self, slack: FakeSlack) -> None:
        error = hook(slack).fails(NotConfiguredError, "#ops")
        assert error.message == "Slack has no bot token"


class TestWhatSlackAnswers:
    """Each reads differently, and says what to do."""

    @pytest.mark.parametrize(
        ("to", "kind", "says"),
        [
            (
                "#nosuch",
                SecretNotFoundError,
                "Slack has no such channel, or hides it (channel_not_found)",
            ),
            (
                "#secret",
                AccessDeniedError,
                "Slack does not have the bot in that channel (not_in_channel)",
            ),
            ("#old", AccessDeniedError, "Slack has archived that channel (is_archived)"),
        ],
    )
    def test_a_channel_that_does_not_take_it(
        self, slack: FakeSlack, to: str, kind: type[PluginError], says: str
    ) -> None:
        error = bot(slack).fails(kind, to)
        assert error.message == says
        assert error.remedy

    def test_a_token_that_is_refused(self, slack: FakeSlack) -> None:
        error = bot(slack, "xoxb-Wrong-Canary-9").fails(BackendAuthError, "#ops")
        assert error.message == "Slack refused the token (invalid_auth)"
        assert "Wrong-Canary" not in told(error)

    def test_a_token_without_the_scope(self, slack: FakeSlack) -> None:
        slack.scopes.clear()
        assert "chat:write" in bot(slack).fails(AccessDeniedError, "#ops").remedy

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [
            (
                Reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "30"}),
                UnavailableError,
            ),
            (Reply(200, {"ok": False, "error": "service_unavailable"}), UnavailableError),
            (Reply(200, {"ok": False, "error": "fatal_error"}), UnknownOutcomeError),
            (Reply(502, {"ok": False, "error": "ratelimited"}), UnknownOutcomeError),
            (Reply(200, "<html>welcome to the hotel</html>"), UnknownOutcomeError),
            (Reply(200, {"ok": "yes"}), UnknownOutcomeError),
            (Reply(200, ["ok"]), UnknownOutcomeError),
            (Reply(200, "[" * 100_000), UnknownOutcomeError),
            (Reply(200, "x" * (1024 * 1024 + 1)), UnknownOutcomeError),
            (Reply(200, {"ok": False, "error": "msg_too_long"}), UnsupportedError),
            (Reply(200, {"ok": False, "error": "a_new_word"}), PluginError),
            (Reply(200, {"ok": False, "error": FRAGMENT}), PluginError),
        ],
    )
    def test_later_refused_or_unclear(
        self, slack: FakeSlack, reply: Any, kind: type[PluginError]
    ) -> None:
        slack.instead.append(reply)
        error = bot(slack).fails(kind, "#ops")
        if isinstance(error, UnavailableError) and isinstance(reply, Reply) and reply.headers:
            assert error.retry_after == 30
        assert len(slack.asked) == 1

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [
            (Reply(403, "action_prohibited"), AccessDeniedError),
            (Reply(410, "channel_is_archived"), AccessDeniedError),
            (Reply(404, "channel_not_found"), SecretNotFoundError),
            (Reply(400, "invalid_payload"), UnsupportedError),
            (Reply(200, "<html>"), UnknownOutcomeError),
        ],
    )
    def test_the_same_of_a_webhook(
        self, slack: FakeSlack, reply: Any, kind: type[PluginError]
    ) -> None:
        slack.instead.append(reply)
        hook(slack).fails(kind, "")

    def test_check_asks_whose_the_token_is_and_posts_nothing(self, slack: FakeSlack) -> None:
        assert bot(slack).check().detail == "as bot of A"
        assert not slack.messages
        with pytest.raises(BackendAuthError):
            bot(slack, "xoxb-wrong").check()
        assert hook(slack).check().ok
        assert not Using("slack", {}).check().ok


class TestItsWebhooks:
    """Not the message, not the token, not a webhook's address."""

    def test_a_webhook_that_is_not_safe_is_refused_without_being_shown(self) -> None:
        for url in (
            "http://hooks.slack.com/services/Hook-Canary",
            "ftp://x/Hook-Canary",
            "Hook-Canary",
            "https://u:p@h/",
        ):
            error = Using("slack", {"SLACK_WEBHOOK_URL": url}).fails(NotConfiguredError, "")
            assert "webhook_url" in error.message
            assert "Canary" not in told(error)
