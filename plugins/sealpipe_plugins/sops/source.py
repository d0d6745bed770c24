"""`sops:PATH#KEY`: a file encrypted with SOPS, decrypted by the program `sops`."""

from __future__ import annotations

import os
import stat
from typing import Final

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Document,
    Health,
    Locator,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
    open_file,
)
from sealpipe_plugins.local.sources import path_remedy
from sealpipe_plugins.sops.client import Sops, SopsSettings, refuse_several

_BY_NAME: Final = (
    (".yaml", "yaml"),
    (".yml", "yaml"),
    (".json", "json"),
    (".env", "dotenv"),
    (".ini", "ini"),
)
_FORMATS: Final = ("yaml", "json", "dotenv", "ini", "binary")


class SopsSource(Source):
    """Encrypted files on this machine. Runs one process per file."""

    concurrency = 4

    def __init__(self, settings: SopsSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sops = Sops(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Return the decrypted file.

        A map if it has keys, otherwise bytes (binary formats, `raw=1`).
        """
        path = _check_path(locator)
        input_type = locator.param("input", "") or ""
        if input_type and input_type not in _FORMATS:
            raise ReferenceValueError(
                f"{locator.name}: input= is one of {', '.join(_FORMATS)}", remedy="correct input="
            )
        file_format = input_type or next(
            (file_format for end, file_format in _BY_NAME if path.endswith(end)), "binary"
        )
        raw = locator.param("raw") or "0"
        if raw not in ("0", "1"):
            raise ReferenceValueError(f"{locator.name}: raw= must be 0 or 1", remedy="correct raw=")
        if raw == "1" or file_format == "binary":
            return Document(
                self._sops.decrypt(
                    path, str(locator), input_type=input_type, output_type=input_type
                )
            )
        if file_format == "yaml":
            refuse_several(path, str(locator))
        return Document(
            self._sops.decrypt(path, str(locator), input_type=input_type, output_type="json"),
            format="json",
        )

    def check(self) -> Health:
        """Check that the program is installed."""
        return Health(ok=True, detail=self._sops.version())


def _check_path(locator: Locator) -> str:
    """Return the path in a form that cannot be parsed as an option.

    Checked before sops is started.
    """
    path = locator.body
    if not path:
        raise ReferenceValueError(
            f"{locator.name}: needs a path", remedy=f"write {locator.name}:PATH"
        )
    if path.startswith("-"):
        path = f"./{path}"
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116 - Path would drop the ./
        if stat.S_ISDIR(kind):
            raise PluginError(f"{locator} is a directory", remedy="name a file in it")
        if not stat.S_ISREG(kind):
            raise PluginError(f"{locator} is not a regular file", remedy="name a file")
        with open_file(path, locator):
            return path
    except PermissionError:
        raise AccessDeniedError(
            f"{locator} may not be read by this user", remedy="give this user the right to read it"
        ) from None
    except (OSError, ValueError):
        raise SecretNotFoundError(
            f"{locator} does not exist", remedy=path_remedy(locator)
        ) from None
