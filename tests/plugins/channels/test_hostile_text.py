"""Whatever a title or a text holds, a message is the one that was meant: the link is whole, and
nothing else is a link, markup, a mention, a command or a field. What every channel promises of a
title is in its contract (`test_contracts.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plugins.channels.using import LINK, Using
from sealpipe.delivery.messages import MessageContext, build_link_message, build_passcode_message
from sealpipe.errors import NotConfiguredError
from sealpipe.plugin import Message, ReferenceValueError, Secret
from sealpipe_plugins.email.address import parse_address
from sealpipe_plugins.wording import as_html, as_markdown, split_lines
from support.fake_chat import WORKFLOW, FakeSlack, FakeTeams
from support.outside_text import outside
from support.shown import READER, markdown

ENDS = datetime(2026, 12, 1, tzinfo=UTC)
SEEN = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
AROUND = "{title}\n{link}\n{title}"


@pytest.fixture(scope="module")
def world() -> Iterator[dict[str, Any]]:
    with FakeSlack() as slack, FakeTeams() as teams:
        yield {"slack": slack, "teams": teams}


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
    """Comments at GitHub and GitLab, posts in Mattermost and Discord."""

    @given(messages())
    @settings(max_examples=200)
    def test_only_the_link_is_a_link_and_nothing_is_found(self, message: Message) -> None:
        shown = markdown(as_markdown(message))
        assert not shown.others
        assert shown.links == [LINK] * sum(line.count(LINK) for line in words(message))
        assert _lines(shown.text) == _lines("\n".join(words(message)))


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
            for block in READER.parse(as_markdown(message))
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


def _lines(text: str) -> list[str]:
    """Its lines that are not empty; of white space and invisible signs, one blank."""
    lines = [" ".join(line.replace("\u2060", "").split()) for line in text.split("\n")]
    return [line for line in lines if line]
