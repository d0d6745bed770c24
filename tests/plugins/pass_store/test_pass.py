"""pass:PATH, with the real program and gpg."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.pass_store.gpg_store import CANARY, environ
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import resolve
from support.backends import opened

__all__ = ["environ"]


def value(text: str, environ: Mapping[str, str]) -> tuple[str, bytes]:
    registry = Registry(environ=environ)
    (field,) = resolve([parse_field(text)], lambda: registry)
    return field.key, opened(field)


def test_the_first_line_is_the_password(environ: Mapping[str, str]) -> None:
    assert value("pass:prod/db", environ) == ("db", "hunter2 é ".encode())
    assert value("pass:one", environ) == ("one", b"hunter2")


def test_raw_gives_the_whole_entry_exactly(environ: Mapping[str, str]) -> None:
    assert value("pass:prod/db?raw=1", environ) == ("db", f"hunter2 é \nuser: {CANARY}\n".encode())


def test_the_store_may_be_a_setting(environ: dict[str, str]) -> None:
    folder = environ["PASSWORD_STORE_DIR"]
    others = {name: text for name, text in environ.items() if name != "PASSWORD_STORE_DIR"}
    named = {"SEALPIPE_STORE__TEAM__PLUGIN": "pass", "SEALPIPE_STORE__TEAM__STORE_DIR": folder}
    assert value("team:one", {**others, **named}) == ("one", b"hunter2")
    with pytest.raises(NotConfiguredError, match="no password store at"):
        value("pass:one", others)


def test_each_failure_reads_differently(environ: dict[str, str], tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    cases: list[tuple[str, Mapping[str, str], type[PluginError], str]] = [
        ("prod/none", environ, SecretNotFoundError, "is not in the password store"),
        ("prod", environ, ReferenceValueError, "is a folder of the password store"),
        ("", environ, ReferenceValueError, "needs the path of an entry"),
        ("-c", environ, ReferenceValueError, "needs the path of an entry"),
        ("prod/../one", environ, ReferenceValueError, "needs the path of an entry"),
        ("/etc/passwd", environ, ReferenceValueError, "needs the path of an entry"),
        ("one?raw=2", environ, ReferenceValueError, "raw= must be 0 or 1"),
        (
            "one",
            {**environ, "GNUPGHOME": str(tmp_path)},
            AccessDeniedError,
            "is encrypted for a key that is missing here",
        ),
        (
            "locked/a",
            environ,
            AccessDeniedError,
            "gpg needs the key's passphrase, and sealpipe never prompts for it",
        ),
        (
            "one",
            {**environ, "PATH": "/none"},
            NotConfiguredError,
            "the program pass is not on PATH",
        ),
    ]
    for body, variables, kind, why in cases:
        with pytest.raises(kind) as caught:
            value(f"pass:{body}", variables)
        error = caught.value
        assert why in error.message
        assert type(error) is kind
        assert error.remedy
        assert CANARY not in repr(vars(error))
    subprocess.run(
        ["gpgconf", "--kill", "all"], env={**environ, "GNUPGHOME": str(tmp_path)}, check=True
    )


def test_doctor_looks_for_the_store(environ: dict[str, str], tmp_path: Path) -> None:
    assert Registry(environ=environ).check("source", "pass").ok
    empty = Registry(environ={**environ, "PASSWORD_STORE_DIR": str(tmp_path)}).check(
        "source", "pass"
    )
    assert (empty.ok, empty.detail) == (False, f"{tmp_path} is not a password store")
