"""The contract of sources, for pass."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Mapping

import pytest

from plugins.pass_store.gpg_store import environ as password_store
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content

__all__ = ["password_store"]


class TestPass(SourceContract):
    name = "pass"
    holds = frozenset({"text", "binary"})

    @pytest.fixture
    def environ(self, password_store: dict[str, str]) -> Mapping[str, str]:
        self.store, self.numbers = password_store, itertools.count()
        return password_store

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"kit/value {next(self.numbers)}"
        command = ["pass", "insert", "-f", "-m", name]
        subprocess.run(command, env=self.store, input=content, check=True, capture_output=True)
        return f"{name}?raw=1"

    def missing(self) -> str:
        return "kit/nothing"

    def denied(self) -> str:
        return "locked/a"
