"""The conformance kit on the channels that speak to other people's systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from plugins.channels.fake_webhooks import (
    DISCORD_HOOK,
    MATTERMOST_HOOK,
    FakeDiscord,
    FakeMattermost,
)
from plugins.channels.using import Using
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry
from sealpipe.testing import ChannelContract
from support import (
    fake_chat,
    fake_github,
    fake_gitlab,
)
from support.fake_chat import WORKFLOW, FakeSlack, FakeTeams
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.mailbox import PASSWORD, USER, Mailbox

TWO = (
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


class TestEmail(Kit):
    name = "email"

    @pytest.fixture
    def environ(self, tmp_path: Path) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with Mailbox(tmp_path) as self.box:
            self.ca_file = self.box.ca_file
            settings = {
                "host": self.box.host,
                "port": f"{self.box.port}",
                "sender": "ci@acme.example",
            }
            settings |= {"username": USER, "password": PASSWORD}
            yield {
                f"SEALPIPE_PLUGIN_EMAIL__{name.upper()}": value for name, value in settings.items()
            }

    def recipient(self) -> str:
        return "ann@example.com"

    def received(self) -> Sequence[str]:
        return [str(next(got.mail.iter_parts()).get_content()) for got in self.box.received]

    def secrets(self) -> Sequence[str]:
        return [PASSWORD]


class TestSlack(Kit):
    name = "slack"

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

    def secrets(self) -> Sequence[str]:
        return [fake_chat.TOKEN]


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
        return [
            "\n".join(run["text"] for b in card["body"] for run in b["inlines"])
            for _, card in self.fake.cards
        ]

    def secrets(self) -> Sequence[str]:
        return ["Sig-7Hc9"]


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

    def secrets(self) -> Sequence[str]:
        return [DISCORD_HOOK]


class TestGitHubComment(Kit):
    name = "github-comment"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitHub() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"GITHUB_API_URL": url, "GITHUB_TOKEN": fake_github.TOKEN}

    def recipient(self) -> str:
        return "acme/app#7"

    def received(self) -> Sequence[str]:
        return self.fake.bodies()

    def secrets(self) -> Sequence[str]:
        return [fake_github.TOKEN]


class TestGitLabNote(Kit):
    name = "gitlab-note"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitLab() as self.fake:
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"CI_SERVER_URL": url, "GITLAB_TOKEN": fake_gitlab.TOKEN}

    def recipient(self) -> str:
        return "acme/sub/app!4"

    def received(self) -> Sequence[str]:
        return self.fake.bodies()

    def secrets(self) -> Sequence[str]:
        return [fake_gitlab.TOKEN]
