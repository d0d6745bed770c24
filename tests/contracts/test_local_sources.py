"""The conformance kit on the sources that need nothing but this machine."""

from __future__ import annotations

import itertools
import os
import pty
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sealpipe.plugin import Document
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.sources.select import select
from sealpipe.testing import SourceContract
from sealpipe.testing.contract import CANARY
from sealpipe.testing.source import Content
from sealpipe.wire.fields import revealed
from support.terminal import readable


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


class TestPrompt(SourceContract):
    """It asks at whatever terminal is named: here one of ours, at which somebody types what belongs
    to the question.
    """

    name = "prompt"
    holds = frozenset({"text"})

    @pytest.fixture(autouse=True)
    def typist(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.known: dict[str, bytes] = {}
        master, slave = pty.openpty()
        monkeypatch.setattr("sealpipe_plugins.local.terminal.TERMINAL", os.ttyname(slave))
        monkeypatch.delenv("CI", raising=False)
        done = threading.Event()
        thread = threading.Thread(target=self._type, args=(master, done))
        thread.start()
        yield
        done.set()
        thread.join()
        for each in (master, slave):
            os.close(each)

    def _type(self, master: int, done: threading.Event) -> None:
        shown = b""
        while not done.is_set():
            if readable([master], 0.02):
                shown += os.read(master, 65_536)
            question = re.search(rb"(value \d+|nothing) \(not shown\): ", shown)
            if question:
                shown = shown[question.end() :]
                os.write(master, self.known.get(question[1].decode(), b"") + b"\r")

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"value {len(self.known)}"
        self.known[name] = content
        return name

    def missing(self) -> str:
        return "nothing"

    def test_text_comes_back_exactly(self, registry: Registry) -> None:
        """One line of it: that is all that a terminal takes."""
        for text in ("plain", " blanks ", CANARY.partition("\n")[0], "\u00e4 $x \\", "a" * 4094):
            assert self.value(registry, text.encode()) == text.encode()


class TestDotenv(TestFile):
    name = "dotenv"
    # It hands the file to the core, which reads it as dotenv.
    holds = frozenset({"text", "binary", "empty"})

    def test_what_is_fetched_is_handed_on_as_base64(self, registry: Registry) -> None:
        document = self.get(registry, self.put(b"key='some text'"))
        assert isinstance(document, Document)
        (field,) = select(document, parse("dotenv:f?encode=base64#key"), form="dotenv")
        assert revealed(field) == "c29tZSB0ZXh0"
