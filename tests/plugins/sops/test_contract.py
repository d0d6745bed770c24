"""The contract of sources, for sops."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.sops.age import Encrypt, Keys, encrypt, keys, others
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content

__all__ = ["encrypt", "keys", "others"]


class TestSops(SourceContract):
    name = "sops"
    holds = frozenset({"text", "binary"})  # a map is handed to the core as JSON, which reads it

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, encrypt: Encrypt, others: Keys) -> None:
        self.here, self.encrypt, self.others, self.numbers = (
            tmp_path,
            encrypt,
            others,
            itertools.count(),
        )

    @pytest.fixture
    def environ(self, keys: Keys, tmp_path: Path) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SOPS_AGE_KEY_FILE": str(keys.file),
        }

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        return str(self.encrypt(f"value {next(self.numbers)}", content))

    def missing(self) -> str:
        return str(self.here / "nothing")

    def denied(self) -> str:
        return str(self.encrypt("theirs", "x", recipient=self.others.recipient))
