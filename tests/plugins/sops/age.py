"""Age keys, and files that sops encrypts for them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.parts import not_installed, program

Encrypt = Callable[..., Path]


class Keys:
    """An age key pair: its file, and the recipient."""

    def __init__(self, folder: Path, name: str) -> None:
        try:
            from pyrage import x25519
        except ImportError:
            not_installed("pyrage")
        identity = x25519.Identity.generate()
        self.private = str(identity)
        self.file = folder / f"{name}.key"
        self.file.write_text(f"# a comment\n{identity}\n")
        self.recipient = str(identity.to_public())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("age"), "ours")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("age"), "theirs")


@pytest.fixture
def encrypt(tmp_path: Path, keys: Keys) -> Encrypt:
    """Encrypt a text under a name."""
    sops = program("sops")

    def make(
        name: str, content: str | bytes, *options: str, recipient: str = keys.recipient
    ) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        subprocess.run(
            [sops, "encrypt", "--in-place", "--age", recipient, *options, f"./{name}"],
            cwd=tmp_path,
            check=True,
        )
        return path

    return make
