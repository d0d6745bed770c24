"""The contracts of sources and sinks, for age: files that pyrage writes and reads."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyrage
import pytest
from pyrage import x25519

from plugins.age.keys import Keys
from sealpipe.registry import Registry
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content


class OnFiles:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.here, self.numbers = tmp_path, itertools.count()
        self.pair, self.others = Keys(tmp_path), Keys(tmp_path, "theirs")

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.pair.environ()

    def secrets(self) -> Sequence[str]:
        return (self.pair.private,)

    def target(self) -> str:
        return str(self.here / f"place {next(self.numbers)}.age")


class TestAge(OnFiles, SourceContract):
    name = "age"
    holds = frozenset({"text", "binary", "empty"})

    def put(self, content: Content) -> str:
        return self.encrypted(content, self.pair)

    def encrypted(self, content: Content, keys: Keys) -> str:
        assert isinstance(content, bytes)
        path = self.target()
        Path(path).write_bytes(pyrage.encrypt(content, [x25519.Recipient.from_str(keys.recipient)]))
        return path

    def missing(self) -> str:
        return str(self.here / "nothing")

    def denied(self) -> str:
        return self.encrypted(b"theirs", self.others)


class TestAgeSink(OnFiles, SinkContract):
    """A machine that has an identity, too."""

    name = "age"
    single = True
    marks = False
    only_encrypts = False

    def stored(self, body: str) -> Mapping[str, bytes]:
        content = Path(body).read_bytes()
        return {
            self.keys[0]: pyrage.decrypt(content, [x25519.Identity.from_str(self.pair.private)])
        }

    def _is_write_only(self, registry: Registry) -> bool:
        del registry
        return self.only_encrypts


class TestAgeSinkThatOnlyEncrypts(TestAgeSink):
    only_encrypts = True

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.pair.writing()
