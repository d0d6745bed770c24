"""teams: on a fake from Microsoft's public documentation of workflow webhooks and connectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plugins.channels.using import (
    LINK,
    TITLE,
    Using,
    passcode,
    share,
)
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SettingError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from support.fake_chat import CONNECTOR, WORKFLOW, FakeTeams
from support.fake_web import Reply


@pytest.fixture
def teams() -> Iterator[FakeTeams]:
    with FakeTeams() as server:
        yield server


def using(teams: FakeTeams, path: str = WORKFLOW, **more: str) -> Using:
    settings = {"webhook_url": teams.base_url + path, **more}
    return Using("teams", {f"SEALPIPE_PLUGIN_TEAMS__{k.upper()}": v for k, v in settings.items()})


@pytest.mark.parametrize("path", [WORKFLOW, CONNECTOR])
def test_a_card_arrives_by_either_kind_of_webhook(teams: FakeTeams, path: str) -> None:
    using(teams, path).send("")
    [(where, card)] = teams.cards
    assert where == path
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open", "url": LINK}]


def test_nothing_in_the_card_is_markup_and_the_link_stands_in_it(teams: FakeTeams) -> None:
    using(teams).send("")
    body = teams.cards[0][1]["body"]
    assert {block["type"] for block in body} == {"RichTextBlock"}  # a TextBlock would read Markdown
    runs = [run for block in body for run in block["inlines"]]
    assert {run["type"] for run in runs} == {"TextRun"}
    texts = ["".join(run["text"] for run in block["inlines"]) for block in body]
    assert texts[0] == "A secret for you"
    assert f'somebody shares "{TITLE}" with you:' in texts
    assert LINK in texts


def test_a_passcode_is_exact_and_has_no_button(teams: FakeTeams) -> None:
    using(teams).send("", passcode("a*b_{{c}} <d>"))
    card = teams.cards[0][1]
    assert {"type": "TextRun", "text": "a*b_{{c}} <d>", "fontType": "Monospace"} in card["body"][2][
        "inlines"
    ]
    assert card["actions"] == []


def test_a_name_chooses_one_of_several_webhooks(teams: FakeTeams) -> None:
    url = teams.base_url
    found = using(teams, webhooks=f"ops={url}{CONNECTOR}\nsame={url}{WORKFLOW} other={url}/nowhere")
    found.send("ops")
    assert [where for where, _ in teams.cards] == [CONNECTOR]
    assert [found.canonical(to) for to in ("", "ops", "same")] == ["", "ops", ""]
    assert (
        found.fails(NotConfiguredError, "dev").message == "no webhook dev is configured for Teams"
    )
    assert found.fails(BackendAuthError, "other").message.startswith(
        "Teams refused the token (401)"
    )


@pytest.mark.parametrize(
    "webhooks",
    ["https://h/x", "=https://h/x", "a=", "A=https://h/x", "a=https://h/x a=https://h/y"],
)
def test_webhooks_that_cannot_be_read_are_named_and_not_shown(
    teams: FakeTeams, webhooks: str
) -> None:
    with pytest.raises(SettingError, match="has an invalid value for webhooks") as caught:
        using(teams, webhooks=webhooks).send("a")
    assert "https" not in f"{caught.value!r} {caught.value.remedy}"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(200, "Webhook message delivery failed with error: Microsoft Teams endpoint returned "
            "HTTP error 429 with ContextId tcid=1"), UnavailableError),
        (Reply(200, "Webhook message delivery failed with error: HTTP error 500"),
            UnknownOutcomeError),
        (Reply(413, "Request Entity Too Large"), PluginError),
    ],
)  # fmt: skip
def test_what_is_not_taken(teams: FakeTeams, reply: Any, kind: type[PluginError]) -> None:
    teams.instead.append(reply)
    using(teams).fails(kind, "")
    assert len(teams.asked) == 1


def test_what_is_too_long_is_not_sent(teams: FakeTeams) -> None:
    error = using(teams).fails(UnsupportedError, "", share("long " * 8000 + LINK))
    assert "28 KB" in error.message
    assert not teams.asked


def test_without_a_name_there_has_to_be_one_that_has_none(teams: FakeTeams) -> None:
    named = {"SEALPIPE_PLUGIN_TEAMS__WEBHOOKS": f"ops={teams.base_url}{WORKFLOW}"}
    error = Using("teams", named).fails(ReferenceValueError, "")
    assert error.message == "the recipient is missing, and no unnamed webhook is set"


def test_check_says_whether_one_is_set(teams: FakeTeams) -> None:
    assert using(teams).check().ok
    assert not Using("teams", {}).check().ok
    assert not teams.asked
