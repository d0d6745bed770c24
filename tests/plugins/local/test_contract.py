"""The conformance kit on the sinks that need nothing but this machine."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.local import env_readers
from sealpipe.testing import SinkContract


class TestFileSink(SinkContract):
    name = "file"
    single = True
    marks = False

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.here, self.numbers = tmp_path, itertools.count()

    def target(self) -> str:
        return str(self.here / f"place {next(self.numbers)}")

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {self.keys[0]: Path(body).read_bytes()}


class TestDirSink(TestFileSink):
    name = "dir"
    single = False
    apart = True
    keys = ("a", "b.txt", "C_-3")

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {path.name: path.read_bytes() for path in Path(body).iterdir()}


class TestDotenvSink(TestFileSink):
    name = "dotenv"
    single = False
    keys = ("FIRST", "_second", "THIRD_3")
    canary = "c4nary-5f1e-ä€-pass%word[@]"

    def stored(self, body: str) -> Mapping[str, bytes]:
        file = Path(body)
        asked = [line.partition("=")[0] for line in file.read_text().splitlines()]
        told = [read(file, asked) for read in env_readers.readers().values()]
        assert all(each == told[0] for each in told)
        return {key: (value or "").encode() for key, value in told[0].items()}
