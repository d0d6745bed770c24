"""Whatever a title or a text holds, a message is the one that was meant: the link is whole, and
nothing else is a link, markup, a mention, a command or a field. Of every channel but email
(`test_hostile_mail.py`)."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from plugins.channels.fake_webhooks import FakeDiscord, FakeMattermost
from plugins.channels.using import LINK, Using
from sealpipe.delivery.messages import MessageContext, build_link_message, build_passcode_message
from sealpipe.errors import NotConfiguredError, UnsupportedError
from sealpipe.plugin import Message, ReferenceValueError, Secret
from sealpipe.testing.hostile import COMMANDS, MAIL, MARKUP
from sealpipe_plugins.email.address import parse_address
from sealpipe_plugins.wording import as_html, as_markdown, split_lines
from support import (
    fake_chat,
    fake_github,
    fake_gitlab,
)
from support.fake_chat import WORKFLOW, FakeSlack, FakeTeams
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.fake_web import Asked, FakeWeb, Reply
from support.outside_text import outside

ENDS = datetime(2026, 12, 1, tzinfo=UTC)
SEEN = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
AROUND = "{title}\n{link}\n{title}"
EVERY = [*MAIL, *MARKUP, *COMMANDS]


class Taking(FakeWeb):
    """A webhook of somebody's that takes everything."""

    def answer(self, asked: Asked) -> Reply:  # noqa: ARG002 - FakeWeb's
        return Reply(200, "")


@pytest.fixture(scope="module")
def world() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        yield {
            "slack": stack.enter_context(FakeSlack()),
            "teams": stack.enter_context(FakeTeams()),
            "mattermost": stack.enter_context(FakeMattermost()),
            "discord": stack.enter_context(FakeDiscord()),
            "github": stack.enter_context(FakeGitHub()),
            "gitlab": stack.enter_context(FakeGitLab()),
            "webhook": stack.enter_context(Taking()),
        }


def messages() -> st.SearchStrategy[Message]:
    """A share's, a request's and a passcode's message: with our text, or one of the user's own."""
    templates = st.sampled_from(
        [None, AROUND, "{title}{link}{title}\n{title}", "See {link} for {title}."]
    )
    shares = st.builds(
        lambda kind, title, template: build_link_message(
            Secret(LINK),
            MessageContext(kind, title, "aB3", ENDS, 1, with_passcode=True, template=template),
        ),
        st.sampled_from(["share", "request"]),
        outside(),
        templates,
    )
    raw = st.builds(
        lambda title, before, after: Message(
            "share",
            Secret(LINK),
            Secret(f"{before}\n{LINK} {after}".replace(f"{LINK}{LINK}", "")),
            title,
            title,
            "aB3",
        ),
        outside(),
        outside(),
        outside(),
    )
    return shares | raw


def of_title(title: str) -> Message:
    return build_link_message(
        Secret(LINK),
        MessageContext("share", title, "aB3", ENDS, 1, with_passcode=False, template=AROUND),
    )


def words(message: Message) -> list[str]:
    """The lines that are meant, without what nobody sees."""
    return ["".join(piece.text for piece in line) for line in split_lines(message)]


class TestMarkdown:
    """Comments at GitHub and GitLab, posts in Mattermost and Discord: read by a Markdown reader,
    and by the words that all find in what is shown."""

    READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    FOUND = re.compile(
        r"""https?://|\bwww\.|@\w|(?<!\w)[#!$%~&^](?=[\w"'{])|\bGH-\d|\[\w+:|:[\w+-]+:""",
        re.ASCII | re.IGNORECASE,
    )

    def shown(self, message: Message) -> str:
        """The text that is shown, each link as LINK between marks.

        Only paragraphs, line ends and links are there.
        """
        body = as_markdown(message)
        said = ""
        for block in self.READER.parse(body):
            assert block.type in ("paragraph_open", "paragraph_close", "inline"), (block.type, body)
            said += "\n" if block.type == "paragraph_close" else ""
            for token in block.children or ():
                assert token.type in (
                    "text",
                    "text_special",
                    "softbreak",
                    "hardbreak",
                    "link_open",
                    "link_close",
                ), (
                    token.type,
                    body,
                )
                if token.type == "link_open":
                    assert (token.info, token.attrs) == ("auto", {"href": LINK})
                said += {
                    "softbreak": "\n",
                    "hardbreak": "\n",
                    "link_open": "\ue000",
                    "link_close": "\ue001",
                }.get(token.type, token.content)
        for line in body.split("\n"):
            assert not re.match(r"\s*(?:/|>>>|---|\+\+\+|;;;|```|~~~|::)", line), line
        return said

    @pytest.mark.parametrize("title", EVERY)
    def test_of_a_title(self, title: str) -> None:
        self.is_text_and_the_link(of_title(title))

    @given(messages())
    @settings(max_examples=200)
    def test_only_the_link_is_a_link_and_nothing_is_found(self, message: Message) -> None:
        self.is_text_and_the_link(message)

    def is_text_and_the_link(self, message: Message) -> None:
        said = self.shown(message)
        assert said.count(f"\ue000{LINK}\ue001") == sum(line.count(LINK) for line in words(message))
        # What stands on either side of it does not meet.
        rest = said.replace(f"\ue000{LINK}\ue001", "\ue002")
        assert "\ue000" not in rest
        assert not self.FOUND.search(rest), (self.FOUND.search(rest), rest)
        meant = [" ".join(line.split()) for line in words(message)]
        plain = said.replace("\ue000", "").replace("\ue001", "").replace("\u2060", "")
        assert [" ".join(line.split()) for line in plain.split("\n") if line.strip()] == [
            line.replace("\u2060", "") for line in meant if line
        ]

    @given(message=messages())
    @settings(SEEN, max_examples=15)
    def test_it_is_what_a_webhook_gets_with_nothing_beside(
        self, world: dict[str, Any], message: Message
    ) -> None:
        text = as_markdown(message)
        mattermost, discord = world["mattermost"], world["discord"]
        Using("mattermost", {"MATTERMOST_WEBHOOK_URL": mattermost.webhook_url}).send("", message)
        attachment = {"fallback": "A message from sealpipe", "text": text}
        assert mattermost.asked[-1].json == {"text": "", "attachments": [attachment]}
        with suppress(UnsupportedError):  # more than 2,000 characters
            Using("discord", {"DISCORD_WEBHOOK_URL": discord.webhook_url}).send("", message)
            assert discord.asked[-1].json == {
                "content": text,
                "allowed_mentions": {"parse": []},
                "flags": 4,
            }

    @pytest.mark.parametrize("name", ["github", "gitlab"])
    @given(message=messages())
    @settings(SEEN, max_examples=15)
    def test_it_arrives_as_one_comment_with_nothing_beside(
        self, world: dict[str, Any], name: str, message: Message
    ) -> None:
        fake = world[name]
        if name == "github":
            environ = {"GITHUB_TOKEN": fake_github.TOKEN, "GITHUB_API_URL": fake.base_url}
            Using("github-comment", environ).send("acme/app#7", message)
        else:
            environ = {
                "GITLAB_TOKEN": fake_gitlab.TOKEN,
                "CI_API_V4_URL": f"{fake.base_url}/api/v4",
            }
            Using("gitlab-note", environ).send("acme/sub/app!4", message)
        sent = [asked.json for asked in fake.asked if asked.method == "POST"]
        assert all(set(each) <= {"body", "internal"} for each in sent)
        assert as_markdown(message).strip() in [each["body"].strip() for each in sent]


@pytest.mark.parametrize(
    "title", ["w" * 100_000, "\U0001f511 " * 20_000, "<" * 100_000, "@" * 50_000]
)
def test_a_title_that_is_too_long_keeps_no_link_from_anybody(
    world: dict[str, Any], title: str
) -> None:
    message = of_title(title)
    assert len(message.text.reveal()) < 1000
    assert message.text.reveal().split("\n")[1] == LINK
    assert len(as_markdown(message)) < 5000
    Using("teams", {"TEAMS_WEBHOOK_URL": world["teams"].base_url + WORKFLOW}).send("", message)
    Using("slack", {"SLACK_WEBHOOK_URL": world["slack"].webhook_url}).send("", message)


class TestHtml:
    """The page of a mail."""

    @given(messages())
    @settings(max_examples=200)
    def test_only_the_link_is_markup(self, message: Message) -> None:
        page = as_html(message)
        tags = re.findall(r"<[^>]*>", page)
        link = '<a href="' + LINK + '">'
        assert {re.sub(r"[\s>].*", "", tag) for tag in tags} <= {
            "<!DOCTYPE", "<html", "<head", "<meta", "<title", "</title", "</head", "<body",
            "</body", "</html",
            "<p", "</p", "<br", "<a", "</a"}  # fmt: skip
        assert {tag for tag in tags if tag.startswith("<a")} == {link}
        assert page.count(f"{link}{LINK}</a>") == page.count("<a ")


class TestSlack:
    """Blocks, in which text is text; and the text for notifications, with Slack's markup switched
    off.
    """

    @pytest.mark.parametrize("to", ["#ops", ""])
    @given(message=messages())
    @example(
        message=of_title(
            "<!channel> <@U024BE7LH> <https://evil.example|link> &lt;!here&gt; *b* `c`"
        )
    )
    @settings(SEEN)
    def test_nothing_but_the_link_is_anything(
        self, world: dict[str, Any], to: str, message: Message
    ) -> None:
        slack = world["slack"]
        environ = {
            "SEALPIPE_PLUGIN_SLACK__API_URL": slack.api_url,
            "SLACK_BOT_TOKEN": fake_chat.TOKEN,
        }
        Using("slack", {**environ, "SLACK_WEBHOOK_URL": slack.webhook_url}).send(to, message)
        sent = slack.asked[-1].json
        assert set(sent) == {"text", "blocks", "mrkdwn", "unfurl_links", "unfurl_media"} | (
            {"channel"} if to else set()
        )
        assert (sent["mrkdwn"], sent["unfurl_links"], sent["unfurl_media"]) == (False, False, False)
        [block] = sent["blocks"]
        [section] = block["elements"]
        assert (block["type"], set(block), section["type"]) == (
            "rich_text",
            {"type", "elements"},
            "rich_text_section",
        )
        for each in section["elements"]:
            assert each in (
                {"type": "link", "url": LINK},
                {"type": "text", "text": each.get("text")},
            )
        assert "".join(
            each.get("url") or each["text"] for each in section["elements"]
        ) == "\n".join(words(message))
        assert sum(each["type"] == "link" for each in section["elements"]) >= 1
        text = sent["text"]
        assert re.findall(r"<[^>]*>?", text) == [f"<{LINK}>"] * len(re.findall("<", text))
        assert f"<{LINK}>" in text
        assert not re.search(r"&(?!amp;|lt;|gt;)", text)


class TestTeams:
    """A card of text runs, and one button."""

    @given(message=messages())
    @example(
        message=of_title(
            "{{DATE(2026-01-01T00:00:00Z)}} **b** [l](https://evil.example) <at>Ann</at>"
        )
    )
    @settings(SEEN)
    def test_nothing_but_the_link_is_anything(
        self, world: dict[str, Any], message: Message
    ) -> None:
        teams = world["teams"]
        try:
            Using("teams", {"TEAMS_WEBHOOK_URL": teams.base_url + WORKFLOW}).send("", message)
        except UnsupportedError:  # more than 28 KB
            return
        sent = teams.asked[-1].json
        [attachment] = sent["attachments"]
        card = attachment["content"]
        assert (set(sent), set(attachment)) == (
            {"type", "attachments"},
            {"contentType", "contentUrl", "content"},
        )
        assert set(card) == {"$schema", "type", "version", "body", "actions"}
        assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open", "url": LINK}]
        runs = [list(block["inlines"]) for block in card["body"]]
        for block in card["body"]:
            assert (block["type"], set(block) - {"spacing"}) == (
                "RichTextBlock",
                {"type", "inlines"},
            )
            for run in block["inlines"]:
                assert (run["type"], set(run) - {"weight", "fontType"}) == (
                    "TextRun",
                    {"type", "text"},
                )
                assert "{{" not in run["text"]
        said = ["".join(run["text"] for run in block).replace("\u2060", "") for block in runs][1:]
        assert said == [line.replace("\u2060", "") for line in words(message) if line]
        assert any(
            run == {"type": "TextRun", "text": LINK, "fontType": "Monospace"}
            for block in runs
            for run in block
        )


class TestWebhook:
    """JSON with the members that are documented, each once."""

    @given(message=messages())
    @example(message=of_title('", "link": "https://evil.example", "x": "'))
    @settings(SEEN)
    def test_every_member_is_there_once_and_holds_what_was_meant(
        self, world: dict[str, Any], message: Message
    ) -> None:
        hook = world["webhook"]
        Using("webhook", {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s"}).send(
            f"{hook.base_url}/x", message
        )
        asked = hook.asked[-1]
        assert (asked.method, asked.target) == ("POST", "/x")
        pairs = json.loads(asked.body.decode("utf-8"), object_pairs_hook=list)
        body = dict(pairs)
        assert [name for name, _ in pairs] == [
            "schema",
            "event",
            "short_code",
            "link",
            "title",
            "expires_at",
            "text",
        ]
        assert (body["schema"], body["event"], body["short_code"], body["link"]) == (
            1,
            message.what,
            "aB3",
            LINK,
        )
        assert body["title"] == _whole(message.title or "")
        assert body["text"] == _whole(message.text.reveal())


class TestFile:
    """The link and a newline, whatever stands around it."""

    @given(messages())
    @settings(SEEN)
    def test_it_holds_the_link_alone(self, message: Message) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Using("file", {}).send(f"{folder}/link", message)
            assert (Path(folder) / "link").read_bytes() == f"{LINK}\n".encode()
            assert [path.name for path in Path(folder).iterdir()] == ["link"]


class TestThePasscode:
    """A message that has no link: a title cannot make it one."""

    @given(outside())
    @settings(max_examples=100)
    def test_it_stands_there_exactly_and_nothing_is_a_link(self, title: str) -> None:
        message = build_passcode_message(
            Secret("Pass_*code*-Canary"),
            MessageContext("share", title, "aB3", None, None, with_passcode=True),
        )
        assert not [
            token
            for block in TestMarkdown.READER.parse(as_markdown(message))
            for token in block.children or ()
            if "link" in token.type
        ]
        assert "`Pass_*code*-Canary`" in as_markdown(message)
        assert "<a " not in as_html(message)


class TestTheRecipient:
    """What fills {to} is exactly one recipient, or refused."""

    NAMES = (
        "email",
        "slack",
        "teams",
        "mattermost",
        "discord",
        "github-comment",
        "gitlab-note",
        "webhook",
    )

    @given(
        outside()
        | st.builds(
            "{}@{}".format, outside(), st.sampled_from(["example.com", "bücher.example", "x"])
        )
    )
    @example("ann@example.com, eve@evil.example")
    @example("Ann <ann@example.com>")
    @example("ann@exämple.com\nBcc: eve@evil.example")
    @example("=?utf-8?q?eve?=@example.com")
    @settings(max_examples=200)
    def test_an_address_is_one_or_none(self, to: str) -> None:
        try:
            found = parse_address(to)
        except ReferenceValueError:
            return
        local, _, domain = found.rpartition("@")
        assert re.fullmatch(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", domain)
        assert not re.search(r"[\s@,;:<>()\[\]\\\"%!?|]", local)
        assert local == to.rpartition("@")[0]

    @pytest.mark.parametrize("name", NAMES)
    @given(to=outside())
    @settings(SEEN, max_examples=60)
    def test_of_every_channel(self, name: str, to: str) -> None:
        environ = {
            "SLACK_BOT_TOKEN": "xoxb-x", "TEAMS_WEBHOOK_URL": "https://h.example/x",
            "GITHUB_TOKEN": "x",
            "GITLAB_TOKEN": "x",
            "MATTERMOST_WEBHOOK_URL": "https://h.example/x",
            "DISCORD_WEBHOOK_URL": "https://h.example/x",
            "SEALPIPE_PLUGIN_EMAIL__HOST": "h.example",
            "SEALPIPE_PLUGIN_EMAIL__SENDER": "ci@acme.example",
            "SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s",
        }  # fmt: skip
        try:
            spelled = Using(name, environ).canonical(to)
        except (ReferenceValueError, NotConfiguredError):
            return
        assert spelled.isprintable()
        assert not re.search(r"[\s,;<>\"]", spelled), spelled


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
