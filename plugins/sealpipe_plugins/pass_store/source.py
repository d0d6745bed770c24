"""`pass:PATH`: the password of a `pass` entry: its first line, as with `pass -c`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Document,
    Health,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins import program


class PassSettings(PluginSettings):
    """`program` is pass, `store_dir` the folder of the entries (~/.password-store); `timeout` is in
    seconds.
    """

    program: str = "pass"
    store_dir: Path | None = None
    timeout: float = Field(30.0, gt=0, le=3600)

    file_only = frozenset({"program"})
    own_variables = {"store_dir": "PASSWORD_STORE_DIR"}  # noqa: RUF012 - a ClassVar of the base


_INSTALL: Final = "install pass and gnupg (packages of most systems)"
_GPG_OPTIONS: Final = "--pinentry-mode=error --status-fd=2"
"""For gpg: fail on a passphrase that gpg-agent does not know, and report it on stderr in a fixed
form.
"""


class PassSource(Source):
    """A password store on this machine. Runs one process per entry."""

    def __init__(self, settings: PassSettings, context: Context) -> None:
        super().__init__(settings, context)
        home = Path(context.environ.get("HOME") or Path.home())
        self._folder = settings.store_dir or home / ".password-store"

    def fetch(self, locator: Locator) -> Document:
        """Return the first line without its newline.

        With `raw=1` the whole entry, byte for byte.
        """
        raw = locator.param("raw") or "0"
        if raw not in ("0", "1"):
            raise ReferenceValueError(f"{locator.name}: raw= must be 0 or 1", remedy="correct raw=")
        self._require_entry(locator)
        content = self._show(locator)
        return Document(content if raw == "1" else content.partition(b"\n")[0])

    def check(self) -> Health:
        """Check that the program and the store exist. Decrypts nothing."""
        program.find_program(self.settings.program, self.context.child_environ(), _INSTALL)
        is_store = (self._folder / ".gpg-id").is_file()
        return Health(
            ok=is_store,
            detail=f"{self._folder}" if is_store else f"{self._folder} is not a password store",
        )

    def _require_entry(self, locator: Locator) -> None:
        """Check that the entry exists.

        Pass itself would list a folder, and accept `..` and options.
        """
        path = locator.body
        parts = path.split("/")
        if not path or path.startswith(("-", "/")) or ".." in parts or "" in parts:
            raise ReferenceValueError(
                f"{locator.name}: needs the path of an entry",
                remedy=f"write {locator.name}:folder/entry",
            )
        if not self._folder.is_dir():
            raise NotConfiguredError(
                f"no password store at {self._folder}", remedy="set PASSWORD_STORE_DIR"
            )
        if (self._folder / f"{path}.gpg").is_file():
            return
        if (self._folder / path).is_dir():
            raise ReferenceValueError(
                f"{locator} is a folder of the password store", remedy="name an entry in it"
            )
        raise SecretNotFoundError(
            f"{locator} is not in the password store", remedy="check the path with `pass ls`"
        )

    def _show(self, locator: Locator) -> bytes:
        environ = self.context.child_environ()
        options = f"{environ.get('PASSWORD_STORE_GPG_OPTS', '')} {_GPG_OPTIONS}".strip()
        environ |= {"PASSWORD_STORE_DIR": str(self._folder), "PASSWORD_STORE_GPG_OPTS": options}
        path = program.find_program(self.settings.program, environ, _INSTALL)
        try:
            result = program.run_program(
                [path, "show", "--", locator.body], "pass", environ=environ, timeout=self._timeout()
            )
        except program.ProgramTimeoutError:
            result = None
        if result is None:
            raise PluginError(
                f"{locator} could not be read: pass did not finish within {self._timeout():g} s",
                remedy="run `pass show` manually, or set a longer timeout",
            )
        if result.status and b"[GNUPG:] DECRYPTION_FAILED" in result.errors:
            raise self._decryption_error(locator, result.errors, environ)
        if result.status:
            raise PluginError(
                f"{locator} could not be read: pass {result.outcome}",
                remedy="run `pass show` manually",
            )
        return result.out

    def _timeout(self) -> float:
        is_configured = "timeout" in self.settings.model_fields_set
        return program.effective_timeout(
            self.settings.timeout, self.context.deadline, is_configured=is_configured
        )

    def _decryption_error(
        self, locator: Locator, errors: bytes, environ: Mapping[str, str]
    ) -> AccessDeniedError:
        """Return the error for a missing or locked key; gpg does not distinguish them."""
        ids = [key_id.decode() for key_id in re.findall(rb"ENC_TO ([0-9A-F]{8,40}) ", errors)]
        gpg = program.find_program("gpg", environ, _INSTALL)
        argv = [gpg, "--batch", "--list-secret-keys", "--", *ids]
        try:
            has_key = (
                ids
                and program.run_program(
                    argv, "gpg", environ=environ, timeout=self._timeout()
                ).status
                == 0
            )
        except program.ProgramTimeoutError:
            has_key = False
        if not has_key:
            return AccessDeniedError(
                f"{locator} is encrypted for a key that is missing here",
                remedy="import it, or set GNUPGHOME",
            )
        return AccessDeniedError(
            (
                f"{locator} could not be decrypted: gpg needs the key's passphrase, and "
                "sealpipe never prompts for it"
            ),
            remedy="unlock the key for gpg-agent first, or use a key without passphrase",
        )
