"""The conformance kit on the sources that start programs: sops, pass and whatever exec is told."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.pass_store.test_pass import environ as password_store
from plugins.sops.test_sops import Encrypt, encrypt, keys, others
from plugins.sops.test_sops import Keys as Keys
from sealpipe.errors import ReferenceValueError
from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content

__all__ = ["encrypt", "keys", "others", "password_store"]


class TestSops(SourceContract):
    name = "sops"
    holds = frozenset({"text", "binary"})  # a map is handed to the core as JSON, which reads it

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, encrypt: Encrypt, others: Keys) -> None:
        self.here, self.encrypt, self.others, self.numbers = tmp_path, encrypt, others, itertools.count()

    @pytest.fixture
    def environ(self, keys: Keys, tmp_path: Path) -> Mapping[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SOPS_AGE_KEY_FILE": str(keys.file)}

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        return str(self.encrypt(f"value {next(self.numbers)}", content))

    def missing(self) -> str:
        return str(self.here / "nothing")

    def denied(self) -> str:
        return str(self.encrypt("theirs", "x", recipient=self.others.recipient))


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
        return Registry(environ=environ, config=lambda: {"plugins": {"exec": {"commands": commands}}})

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
