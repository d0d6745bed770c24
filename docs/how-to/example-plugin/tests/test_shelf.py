"""The contract tests of the three plugins, and what the contract cannot know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
import shelf_service
from sealpipe.plugin import BackendAuthError, ReferenceValueError
from sealpipe.registry import Registry
from sealpipe.testing import ChannelContract, Shown, SinkContract, SourceContract


class OnShelf:
    """A Shelf for each test, and the variables for it."""

    @pytest.fixture(autouse=True)
    def service(self) -> Iterator[None]:
        with shelf_service.start() as self.shelf:
            yield

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.at(self.shelf.url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"SHELF_URL": url, "SHELF_TOKEN": shelf_service.TOKEN}

    def secrets(self) -> Sequence[str]:
        return [shelf_service.TOKEN]


class TestSource(OnShelf, SourceContract):
    name = "shelf"
    holds = frozenset({"text", "binary", "map", "empty"})

    def put(self, content: bytes | Mapping[str, bytes]) -> str:
        return self.shelf.put(content)

    def missing(self) -> str:
        return "nothing"

    def denied(self) -> str:
        return shelf_service.PRIVATE

    @pytest.mark.parametrize("body", ["", ".", ".."])
    def test_what_is_no_name_is_refused(self, registry: Registry, body: str) -> None:
        assert isinstance(self.get(registry, body), ReferenceValueError)

    def test_a_wrong_token_reads_as_one(self, environ: Mapping[str, str]) -> None:
        error = self.get(self.registry_in({**environ, "SHELF_TOKEN": "another"}), "nothing")
        assert isinstance(error, BackendAuthError)
        assert "SHELF_TOKEN" in error.remedy


class TestSink(OnShelf, SinkContract):
    name = "shelf"
    number = 0

    def target(self) -> str:
        self.number += 1
        return f"new-{self.number}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return self.shelf.read(body)

    def versions(self, body: str) -> int:
        return int(self.shelf.labels[body]["etag"])

    def rotate(self, body: str, key: str, value: str) -> None:
        self.shelf.change(body, key, value)


class TestChannel(OnShelf, ChannelContract):
    name = "shelf"

    def recipient(self) -> str:
        return "ada"

    def strangers(self) -> Sequence[str]:
        return ["ada,bob", "ada bob", "ada/../bob", "ada?cc=bob", "Ada", "ada\n", "-ada", "a" * 40]

    def received(self) -> Sequence[str]:
        return [text for person, text in self.shelf.notes if person == "ada"]

    def shown(self) -> Sequence[Shown]:
        return [Shown(self.received()[-1])]  # a note is plain text: nothing in it is a link
