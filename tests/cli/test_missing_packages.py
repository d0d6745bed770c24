"""Packages that are missing are named all at once, with the settings that are."""

from __future__ import annotations

import sys

import pytest

from support.terminal import Terminal

WITHOUT = """if 1:
    import sys
    for name in "hvac", "botocore", "keyring":
        sys.modules[name] = None
    from sealpipe.cli.main import run
    sys.exit(run(sys.argv[1:]))
"""
EXTRAS = "'sealpipe[vault]'", "'sealpipe[aws]'", "'sealpipe[keyring]'"
STORES = {
    "share": ["share", "-f", "vault:a#b", "-f", "aws-sm:x", "--also-to", "keyring:a/b"],
    "collect": [
        "collect",
        "AbC",
        "--key",
        "vault:a#b",
        "--to",
        "aws-sm:x#y=Password",
        "--to",
        "keyring:a/b#=Password",
    ],
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("with_credential", [True, False])
def test_missing_packages_are_told_at_once(
    user: Terminal, name: str, *, with_credential: bool
) -> None:
    environ = {
        "VAULT_ADDR": "http://127.0.0.1:9",
        **({} if with_credential else {"SEALPIPE_API_KEY": None}),
    }
    words = [word.replace("#=", "#a=") for word in STORES[name]]
    done = user.run([sys.executable, "-c", WITHOUT, *words], environ=environ)
    assert done.code == (14 if with_credential else 2), done
    assert [extra for extra in EXTRAS if extra not in done.err] == []
    assert ("SEALPIPE_API_KEY is not set" in done.err) is not with_credential
