"""The contract of channels on each of them; only `test_broken_channels.py` runs this file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser

import pytest

from contracts.chats import NAMES
from sealpipe.testing import ChannelContract, Shown
from support.fake_web import Asked, FakeWeb, Reply

TOKEN = "chat-token-canary-5e1"


class Chat(FakeWeb):
    """Takes notes."""

    def answer(self, asked: Asked) -> Reply:
        if (asked.method, asked.path) != ("POST", "/notes"):
            return Reply(404)
        return Reply(201, {"id": f"{len(self.asked)}"})

    @property
    def notes(self) -> list[str]:
        return [asked.json["html"] for asked in self.asked]


class Page(HTMLParser):
    """What a reader sees of a note."""

    def __init__(self, note: str) -> None:
        super().__init__()
        self.text, self.links, self.others = "", list[str](), list[str]()
        self.feed(note)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        (self.links if tag == "a" else self.others).append(str(dict(attrs).get("href", tag)))

    def handle_comment(self, data: str) -> None:
        self.others.append(data)


class OnChat(ChannelContract):
    built_in = ("contracts.chats",)

    @pytest.fixture(autouse=True)
    def _soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sealpipe.testing.channel.PATIENCE", 0.2)

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with Chat() as self.chat:
            yield self.at(self.chat.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"CHAT_URL": url, "CHAT_TOKEN": TOKEN}

    def recipient(self) -> str:
        return "ann"

    def strangers(self) -> Sequence[str]:
        return ["ann,bob", "ann?cc=bob"]

    def received(self) -> Sequence[str]:
        return self.chat.notes

    def shown(self) -> Sequence[Shown]:
        page = Page(self.chat.notes[-1])
        return [Shown(page.text, page.links, page.others)]

    def secrets(self) -> Sequence[str]:
        return [TOKEN]


for _name in NAMES:
    _class = f"Test{_name.capitalize()}"
    globals()[_class] = type(_class, (OnChat,), {"name": _name})
