"""The contract of sources, for whatever exec is told to start."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from sealpipe.errors import ReferenceValueError
from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content


class TestExec(SourceContract):
    name = "exec"
    holds = frozenset({"text", "binary", "empty"})

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.here, self.numbers = tmp_path, itertools.count()

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {"PATH": os.defpath}

    def registry_in(self, environ: Mapping[str, str]) -> Registry:
        commands = {"show": {"argv": ["cat", "{arg}"]}}
        return Registry(
            environ=environ, config=lambda: {"plugins": {"exec": {"commands": commands}}}
        )

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        path = self.here / f"value {next(self.numbers)}"
        path.write_bytes(content)
        return f"show?arg={path}"

    def missing(self) -> str:
        return "nothing"

    def test_what_is_not_there_is_not_found_and_named(self, registry: Registry) -> None:
        """A command that nobody has named is no missing value: ?optional=1 must not hide it."""
        assert isinstance(self.get(registry, self.missing()), ReferenceValueError)
