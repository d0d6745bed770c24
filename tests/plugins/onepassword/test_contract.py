"""The conformance kit on 1Password, by a fake of its Connect server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pytest

from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content
from support.flows import Networked

TOKEN = "Canary-token-90aa"


class TestOp(Networked, SourceContract):
    name = "op"
    holds = frozenset({"text", "binary", "map", "empty"})

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FakeConnect() as self.fake:
            self.ours, self.theirs = self.fake.vault("Prod", TOKEN), self.fake.vault("Hidden", "another")
            self.numbers = itertools.count()
            yield

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"OP_CONNECT_HOST": url, "OP_CONNECT_TOKEN": TOKEN}

    def secrets(self) -> Sequence[str]:
        return (TOKEN,)

    def put(self, content: Content) -> str:
        number = next(self.numbers)
        title = f"item {number}"
        if isinstance(content, Mapping):
            fields = [
                {"id": made_id(n, "f"), "label": key, "value": v.decode()} for n, (key, v) in enumerate(content.items())
            ]
            self.fake.item(self.ours, title, fields=fields)
            return f"Prod/{title}"
        try:
            self.fake.item(
                self.ours, title, fields=[{"id": "password", "label": "password", "value": content.decode()}]
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
