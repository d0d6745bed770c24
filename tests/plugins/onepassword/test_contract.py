"""The conformance kit on 1Password, by a fake of its Connect server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.failures import OnTheWay

TOKEN = "Canary-token-90aa"


class OnConnect:
    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FakeConnect() as self.fake:
            self.ours, self.theirs = (
                self.fake.vault("Prod", TOKEN),
                self.fake.vault("Hidden", "another"),
            )
            self.numbers = itertools.count()
            yield

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"OP_CONNECT_HOST": url, "OP_CONNECT_TOKEN": TOKEN}

    def secrets(self) -> Sequence[str]:
        return (TOKEN,)


class TestOp(OnTheWay, OnConnect, SourceContract):
    name = "op"
    holds = frozenset({"text", "binary", "map", "empty"})

    def put(self, content: Content) -> str:
        number = next(self.numbers)
        title = f"item {number}"
        if isinstance(content, Mapping):
            fields = [
                {"id": made_id(n, "f"), "label": key, "value": v.decode()}
                for n, (key, v) in enumerate(content.items())
            ]
            self.fake.item(self.ours, title, fields=fields)
            return f"Prod/{title}"
        try:
            self.fake.item(
                self.ours,
                title,
                fields=[{"id": "password", "label": "password", "value": content.decode()}],
            )
        except UnicodeDecodeError:
            file = made_id(number, "d")
            self.fake.contents[file] = content
            self.fake.item(self.ours, title, files=[{"id": file, "name": "password"}])
        return f"Prod/{title}/password"

    def missing(self) -> str:
        return "Prod/nothing/password"

    def denied(self) -> str:
        return f"{self.theirs}/db/password"


class TestOpSink(OnConnect, SinkContract):
    name = "op"
    atomic = frozenset({"merge"})  # a title or a label may be there twice
    keys = ("password", "username", "API key")

    def versions(self, body: str) -> int:
        return int(self.only(body)["version"])

    def target(self) -> str:
        return f"Prod/item {next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        item = self.only(body)
        sections = {each["id"]: f"{each['label']}/" for each in item.get("sections", [])}
        values = {
            sections.get(each.get("section", {}).get("id"), "") + each["label"]: each[
                "value"
            ].encode()
            for each in item["fields"]
            if each["value"]
        }
        assert values.pop("sealpipe").startswith(b"m")
        return values

    def rotate(self, body: str, key: str, value: str) -> None:
        (field,) = [each for each in self.only(body)["fields"] if each["label"] == key]
        field["value"] = value

    def only(self, body: str) -> Any:
        return {each["title"]: each for each in self.fake.items.values()}[body.partition("/")[2]]
