"""The contracts of sources and sinks, for KeePass."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from plugins.keepass.databases import PASSWORD, Databases
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content


class OnDatabase:
    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path) -> None:
        self.made, self.numbers = Databases(tmp_path), itertools.count()

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.made.environ()

    def secrets(self) -> Sequence[str]:
        return (PASSWORD,)

    def target(self) -> str:
        return f"Vendors/entry {next(self.numbers)}"


class TestKeepass(OnDatabase, SourceContract):
    name = "keepass"
    holds = frozenset({"map"})

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        path = self.target()
        self.made.add(path, custom={key: value.decode() for key, value in content.items()})
        return path

    def missing(self) -> str:
        return "Vendors/nothing"


class TestKeepassSink(OnDatabase, SinkContract):
    name = "keepass"
    keys = ("Password", "UserName", "API key")
    bytes_key = "tls.p12"

    def stored(self, body: str) -> Mapping[str, bytes]:
        fields = self.made.fields(body)
        assert fields["sealpipe"].startswith("m")
        values = {name: value.encode() for name, value in fields.items() if name != "sealpipe"}
        return values | self.made.files(body)

    def rotate(self, body: str, key: str, value: str) -> None:
        assert key == "Password"
        kp = self.made.open()
        entry = next(each for each in kp.entries if "/".join(each.path) == body)
        entry.password = value
        kp.save()
