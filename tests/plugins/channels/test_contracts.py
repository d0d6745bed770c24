"""The conformance kit on the channels that speak to other people's systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from plugins.channels.fake_webhooks import (
    DISCORD_HOOK,
    MATTERMOST_HOOK,
    FakeDiscord,
    FakeMattermost,
)
from plugins.channels.using import Using
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Channel
from sealpipe.registry import Registry
from sealpipe.testing import ChannelContract, Shown
from sealpipe.testing.channel import LINK, Failing
from support import fake_chat, fake_github, fake_gitlab, shown
from support.fake_chat import WORKFLOW, FakeSlack, FakeTeams
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.mailbox import PASSWORD, Mailbox
from support.outside_text import outside
from support.ports import silent_port

TWO = (
    "https://h/",
    "ann@example.com,ops",
    "ops dev",
    "ops\n",
    "ops\x00",
    "a@example.com,b@example.com",
    "acme/app#7,acme/app#8",
    "acme/app!4 acme/app!5",
    "#a,#b",
    "ops;dev",
)
MORE = (
    "a@example.com?cc=b@example.com",
    "a@example.com\nBcc: b@example.com",
    "acme/app#7?x=y",
    "#ops\n#all",
    "ops?x=y",
)


class Kit(ChannelContract):
    """A way out that is closed after each test."""

    ca_file: Path | None = None

    def registry_in(self, environ: Mapping[str, str]) -> Registry:
        network = PluginNetwork(self.ca_file)
        Using.open.append(network)
        return Registry(environ=environ, network=lambda: network)

    def strangers(self) -> Sequence[str]:
        return TWO + MORE

    @given(title=outside())
    @settings(max_examples=15, suppress_health_check=[*HealthCheck])
    def test_no_title_of_any_signs_does(self, channel: Channel, title: str) -> None:
        self.send_title(channel, title)

    def test_no_attribute_shows_a_secret(self, channel: Channel) -> None:
        assert not [secret for secret in self.secrets() if secret in repr(vars(channel))]


class TestEmail(Kit):
    name = "email"

    @pytest.fixture
    def environ(self, tmp_path: Path) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with Mailbox(tmp_path) as self.box:
            self.ca_file = self.box.ca_file
            yield self.box.environ()

    def recipient(self) -> str:
        return "ann@example.com"

    def received(self) -> Sequence[str]:
        return [str(next(got.mail.iter_parts()).get_content()) for got in self.box.received]

    def shown(self) -> Sequence[Shown]:
        return shown.mail(self.box.received[-1], self.recipient())

    def secrets(self) -> Sequence[str]:
        return [PASSWORD]

    @contextmanager
    def failing(self, how: str, environ: Mapping[str, str]) -> Iterator[Failing | None]:
        """The last dot is what makes a message one that may be out."""
        there, before = dict(environ), len(self.box.received)
        if how == "refused":
            there["SEALPIPE_PLUGIN_EMAIL__PORT"] = f"{silent_port()}"
        elif how in ("429", "503"):
            self.box.answers.rcpt = "450 4.2.0 greylisted"
        elif how == "400":
            self.box.answers.rcpt = f"550 5.7.1 {LINK}"
        elif how == "lost":
            self.box.answers.breaks.add("data")
        elif how == "silent":
            self.box.answers.hangs.add("data")
            there["SEALPIPE_PLUGIN_EMAIL__TIMEOUT"] = "2"
        else:
            yield None
            return
        yield Failing(there, lambda: len(self.box.received) - before)
        self.box.answers.rcpt = ""
        self.box.answers.breaks.clear()
        self.box.answers.hangs.clear()


class TestSlack(Kit):
    name = "slack"

    def strangers(self) -> Sequence[str]:
        more = (
            "#ops,#all;#ops?cc=#all;#ops&text=x;@ann;#;@;#a/b;../auth.test;Ops;C024BE91L,C024BE92L"
        )
        return [*super().strangers(), *more.split(";")]

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeSlack() as self.fake:
            yield self.at(self.fake.api_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_SLACK__API_URL": url, "SLACK_BOT_TOKEN": fake_chat.TOKEN}

    def recipient(self) -> str:
        return "#ops"

    def received(self) -> Sequence[str]:
        return [message["text"] for message in self.fake.messages]

    def shown(self) -> Sequence[Shown]:
        message = self.fake.messages[-1]
        return [shown.slack_blocks(message), shown.slack_text(message)]

    def secrets(self) -> Sequence[str]:
        return [fake_chat.TOKEN]


class TestSlackWebhook(TestSlack):
    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeSlack() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_SLACK__WEBHOOKS": f"ops={url}{fake_chat.HOOK}"}

    def recipient(self) -> str:
        return "ops"

    def secrets(self) -> Sequence[str]:
        return [fake_chat.HOOK]


class TestTeams(Kit):
    name = "teams"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeTeams() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_TEAMS__WEBHOOKS": f"ops={url}{WORKFLOW}"}

    def recipient(self) -> str:
        return "ops"

    def received(self) -> Sequence[str]:
        return [shown.teams_card(card).text for _, card in self.fake.cards]

    def shown(self) -> Sequence[Shown]:
        return [shown.teams_card(self.fake.cards[-1][1])]

    def secrets(self) -> Sequence[str]:
        return ["Sig-7Hc9", "/workflows"]


class TestMattermost(Kit):
    name = "mattermost"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeMattermost() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_MATTERMOST__WEBHOOKS": f"ops={url}{MATTERMOST_HOOK}"}

    def recipient(self) -> str:
        return "ops"

    def received(self) -> Sequence[str]:
        return self.fake.texts

    def shown(self) -> Sequence[Shown]:
        return [shown.mattermost_post(self.fake.posts[-1])]

    def secrets(self) -> Sequence[str]:
        return [MATTERMOST_HOOK]


class TestDiscord(Kit):
    name = "discord"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeDiscord() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_DISCORD__WEBHOOKS": f"ops={url}{DISCORD_HOOK}"}

    def recipient(self) -> str:
        return "ops"

    def received(self) -> Sequence[str]:
        return [message["content"] for message in self.fake.messages]

    def shown(self) -> Sequence[Shown]:
        return [shown.discord_message(self.fake.messages[-1])]

    def secrets(self) -> Sequence[str]:
        return [DISCORD_HOOK]


class Comments(Kit):
    """Comments: the channel reads before it writes, and again afterwards."""

    fake: FakeGitHub | FakeGitLab

    def received(self) -> Sequence[str]:
        return self.fake.bodies()

    def shown(self) -> Sequence[Shown]:
        sent = [asked.json for asked in self.fake.asked if asked.method == "POST"]
        return [shown.comment(sent[-1])]


class TestGitHubComment(Comments):
    name = "github-comment"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitHub() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"GITHUB_API_URL": url, "GITHUB_TOKEN": fake_github.TOKEN}

    def recipient(self) -> str:
        return "acme/app#7"

    def secrets(self) -> Sequence[str]:
        return [fake_github.TOKEN]


class TestGitLabNote(Comments):
    name = "gitlab-note"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitLab() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"CI_SERVER_URL": url, "GITLAB_TOKEN": fake_gitlab.TOKEN}

    def recipient(self) -> str:
        return "acme/sub/app!4"

    def secrets(self) -> Sequence[str]:
        return [fake_gitlab.TOKEN]
