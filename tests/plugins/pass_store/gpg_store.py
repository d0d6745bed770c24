"""A real password store of one who has a key."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.parts import program

CANARY = "Canary-e9d0"

LOCKED = "locked@example.org"


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A password store of one who has a key, and another key that wants a passphrase."""
    program("pass"), program("gpg")
    store = tmp_path_factory.mktemp("store")
    keys = Path(tempfile.mkdtemp(prefix="gpg"))  # short: gpg-agent's socket is in it
    environ = {
        "PATH": f"{os.environ['PATH']}{os.pathsep}{os.defpath}",
        "HOME": str(store),
        "GNUPGHOME": str(keys),
        "PASSWORD_STORE_DIR": str(store / "entries"),
    }

    def do(*words: str, text: str = "") -> None:
        done = subprocess.run(
            words, env=environ, input=text.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr.decode())

    for name, word in (("me@example.org", ""), (LOCKED, CANARY)):
        made = [
            "--batch",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            word,
            "--quick-gen-key",
            name,
        ]
        do("gpg", *made, "future-default", "default", "never")  # a small key, at once
    do("pass", "init", "me@example.org")
    do("pass", "insert", "-m", "prod/db", text=f"hunter2 é \nuser: {CANARY}\n")
    do("pass", "insert", "-m", "one", text="hunter2")
    do("pass", "init", "-p", "locked", LOCKED)
    do("pass", "insert", "-m", "locked/a", text=CANARY)
    do("gpgconf", "--kill", "all")
    yield environ
    subprocess.run(["gpgconf", "--kill", "all"], env=environ, check=False)
    shutil.rmtree(keys, ignore_errors=True)
