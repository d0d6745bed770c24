"""The conformance kit on the sources that need nothing but this machine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content


class TestEnv(SourceContract):
    name = "env"
    holds = frozenset({"text"})

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        self.variables: dict[str, str] = {}
        return self.variables

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"VALUE_{len(self.variables)}"
        self.variables[name] = content.decode()
        return name

    def missing(self) -> str:
        return "NOT_THERE"


class TestFile(SourceContract):
    name = "file"
    holds = frozenset({"text", "binary", "empty"})

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.here, self.numbers = tmp_path, itertools.count()

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        path = self.here / f"value {next(self.numbers)}.txt"
        path.write_bytes(content)
        return str(path)

    def missing(self) -> str:
        return str(self.here / "nothing")


class TestDotenv(TestFile):
    name = "dotenv"
    holds = frozenset({"text", "binary", "empty"})  # it hands the file to the core, which reads it as dotenv
