"""The conformance kit on the channels that need no system of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from sealpipe.errors import ReferenceValueError
from sealpipe.plugin import Channel
from sealpipe.testing import ChannelContract, Shown
from support import shown
from support.fake_web import Receiver

SIGNING = "whsec-5f1e0c-canary"


class TestFileChannel(ChannelContract):
    name = "file"

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.here, self.number = tmp_path, 0

    def recipient(self) -> str:
        self.number += 1
        return str(self.here / f"a link {self.number}.txt")

    def strangers(self) -> Sequence[str]:
        (self.here / "there").write_text("precious")
        (self.here / "hanging").symlink_to("nowhere")
        return [
            f"{self.here}/{name}"
            for name in ("", "there", "hanging", "nowhere/x", "there/x", "a/..", ".")
        ]

    def received(self) -> Sequence[str]:
        return [path.read_text() for path in self.here.glob("*.txt")]

    def shown(self) -> Sequence[Shown]:
        return [Shown((self.here / f"a link {self.number}.txt").read_text())]


class TestWebhookChannel(ChannelContract):
    name = "webhook"

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with Receiver() as self.receiver:
            yield self.at(self.receiver.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        self.address = f"{url}/hooks/7"
        return {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": SIGNING, "ADDRESS_OF_THE_TEST": url}

    def recipient(self) -> str:
        return self.address

    def strangers(self) -> Sequence[str]:
        return [
            "hooks.example", "//hooks.example/", "ftp://hooks.example/", "https://", "https:///x",
            "https://a@b/", "https://a:b@hooks.example/", "http://hooks.example/",
            "http://127.0.0.1.example/", "http://0.0.0.0/", "https://hooks.example/#x",
            "https://hooks.example/a b", "https://hooks.example\\@evil.example/",
            "https://hooks.example/../x", "https://hooks.example/%2e%2e/x",
            "https://hooks.example:99999/", "https://hooks.example/,https://evil.example/ x",
            "https://[::1", "file:///etc/passwd",
        ]  # fmt: skip

    def received(self) -> Sequence[str]:
        return [hook.body.decode() for hook in self.receiver.hooks]

    def shown(self) -> Sequence[Shown]:
        return [shown.webhook(self.received()[-1])]

    def secrets(self) -> Sequence[str]:
        return [SIGNING]

    @pytest.mark.parametrize(
        "good", ["https://h.example/a?b=c&d={}", "https://[2001:db8::1]/x", "http://[::1]:8080/"]
    )
    def test_other_addresses_are_taken(self, channel: Channel, good: str) -> None:
        channel.validate(good)

    def test_the_host_is_spelled_one_way(self, channel: Channel) -> None:
        assert channel.canonical("HTTPS://Hooks.Example:443/A") == channel.canonical(
            "https://hooks.example/A"
        )

    def test_port_0_is_none(self, channel: Channel) -> None:
        with pytest.raises(ReferenceValueError):
            channel.validate("https://hooks.example:0/")
