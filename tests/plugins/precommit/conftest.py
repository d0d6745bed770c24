"""What the hooks are to find, made here: nothing of it may stand in the tests themselves."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from urllib.parse import quote

import pytest

from sealpipe_plugins.precommit import main

Hook = Callable[..., "subprocess.CompletedProcess[str]"]


def key() -> str:
    """32 bytes as base64url."""
    return base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")


def found_by() -> Mapping[str, list[str]]:
    """Texts that each rule has to find, by its name; every one with a canary of its own."""
    key_id = base64.urlsafe_b64encode(os.urandom(12)).decode()
    parts = f"_sk_live_{key_id}.{key()}"
    return {
        "link-with-key": [
            f"https://links.example/AbC123#1{key()}",
            f"http://127.0.0.1:8765/s/r/x#1{key()}",
            f"see <https://links.example/s/%2e%2f#1{key()}>.",
            f'"url": "https:\\/\\/links.example\\/AbC\\u00231{key()}"',
            f"https://elsewhere.example/?to=https%3A%2F%2Flinks.example%2FAbC%231{key()}",
            f"HTTPS://links.example/AbC#1{key()}",
            f'"url":"https:\\u002f\\u002Flinks.example\\u002fAbC\\u00231{key()}"',
            (
                f'<a href="https://links.example/AbC&#35;1{key()}">or '
                f"<https://links.example/AbC&#x23;1{key()}"
            ),
            f"__https://links.example/AbC#1{key()}__",
            f"https://links.example?s=AbC#1{key()}",
            f"https://links.example/#/AbC#1{key()}",
            f"links.example/AbC123#1{key()}",
            f"(links.example:8443/s/AbC#1{key()})",
            f"LINK=localhost:8765/s/AbC#1{key()}",
            f"//links.example/AbC#1{key()}",
            f"ann@links.example/AbC#1{key()}",
            f"/s/AbC#1{key()}",
            f"https://links.example/AbC&num;1{key()}",
            f"https://links.example/AbC&#X23;1{key()}",
            f"https://links.example/AbC&#0035;1{key()}",
            f"https://links.example/AbC&#x00023;1{key()}",
            f"https:\\x2f\\x2flinks.example/AbC\\x231{key()}",
            f"https://elsewhere.example/?to=https%253A%252F%252Flinks.example%252FAbC%25231{key()}",
            (
                "https://elsewhere.example/?to=https%2525253A%2525252F%2525252Flinks.example"
                f"%2525252FAbC%252525231{key()}"
            ),
            f"https%253A%252F%252Flinks.example%252FAbC%25231{key()}",
            f"${{BASE_URL}}/s/AbC#1{key()}",
            f"{{{{ base }}}}/s/AbC#1{key()}",
            f"$(BASE)/s/AbC#1{key()}",
            f"%BASE%/s/AbC#1{key()}",
            f"https://links.example/AbC\\u{{23}}1{key()}",
            f"https://links.example/AbC\\U000000231{key()}",
            f"https:\\057\\057links.example\\057AbC\\0431{key()}",
            f"https:&#x2F;&#x2F;links.example&#x2F;AbC&amp;#35;1{key()}",
            _as_json(_as_json(f"https://links.example/AbC#1{key()}")),
            _as_json(_as_json(_as_json(f"links.example/AbC#1{key()}"))),
            quote(_as_json(f"https://links.example/AbC#1{key()}"), safe=""),
        ],
        "credential-with-custody": [
            f"svc{parts}.{key()}",
            f"API_KEY=acme{parts}.{key()}",
            f'"crs{parts}.{key()}"',
            f"https://x.example/?token%3Dsvc{parts}.{key()}",
            f"%22svc{parts}.{key()}%22",
            f"_svc{parts}.{key()}_",
        ],
        "credential": [
            f"svc{parts}",
            f"%3dsvc{parts}",
            f"svc{parts}.{key()}and-more",
            f"Authorization: Bearer acme{parts}",
            f"svc{parts}.",
            f"svc{parts}.short",
        ],
        "seed": [
            f"seed={key()}",
            f'"seed": "{key()}"',
            f"REQUEST_SEED: {key()}",
            f"seed := 1{key()}",
            f"Seed => {key()}",
        ],
        "lone-key": [
            f"#1{key()}",
            f"fragment #1{key()} end",
            f"LINK_KEY=#1{key()}",
            f"k=#1{key()}",
            f"export FRAGMENT=#1{key()};",
            f"key: '#1{key()}'",
            f"AbC123#1{key()}",
            f"links.example?s=AbC#1{key()}",
            f"%231{key()}",
            f"&num;1{key()}",
            f"k=%2525231{key()}",
            f"k=\\u{{23}}1{key()}",
            f"k=\\0431{key()}",
            _as_json(_as_json(f"#1{key()}")),
            f'"first\\n#1{key()}"',
        ],
    }


def _as_json(text: str) -> str:
    """JSON of PHP, with what else JSON may escape; of text that is JSON already: escaped once
    more.
    """
    return json.dumps(text)[1:-1].replace("/", "\\/").replace("#", "\\u0023")


PASSED = (
    "https://links.example/AbC123",
    "https://links.example/AbC123#1short",
    "https://links.example/AbC123#2" + "A" * 43,
    "https://links.example/AbC123#1" + "A" * 44,
    "see issue #1234567890123456789012345678901234567890123456789",
    "svc_sk_live_tooshort.abc",
    "https://docs.example/page#1-" + "how-to-begin-with-it-in-a-few-steps-today4",
    "[1. Begin](#1-" + "how-to-begin-with-it-in-a-few-steps-today4)",
    "a.md#1-" + "how-to-begin-with-it-in-a-few-steps-today4",
    "seedling = " + "A" * 42,
    "sha256-" + "A" * 43 + "=",
    "a" * 200,
    "",
)
"""Texts that no rule may find."""


@pytest.fixture
def hook(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Hook:
    """Run a hook in a folder of its own, as pre-commit does, but in this process."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with chdir(tmp_path):
            code = main.run(words)
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    return run


@pytest.fixture
def started_hook(tmp_path: Path) -> Hook:
    """The same as a process."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sealpipe_plugins.precommit.main", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run
