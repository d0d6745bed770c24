"""KeePass databases, opened and written by pykeepass. Its texts are never shown.

Opening one takes about a second, by design: its key derivation is slow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

from pykeepass import PyKeePass
from pykeepass.exceptions import CredentialsError

from sealpipe.plugin import (
    BackendAuthError,
    Context,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
)
from sealpipe_plugins.keepass.settings import KeepassSettings
from sealpipe_plugins.setting_files import read_setting_file

SIZE_LIMIT: Final = 256 * 1024 * 1024
_KEY_FILE_LIMIT: Final = 1024 * 1024
_KDBX: Final = b"\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5"
"""How files of KeePass 2 begin."""


class Opener:
    """Opens databases with the password and the key file of the settings."""

    def __init__(self, settings: KeepassSettings, context: Context) -> None:
        self._context = context
        self._password = settings.password
        file = settings.key_file
        self._key = (
            None if file is None else read_setting_file(file, "key_file", context, _KEY_FILE_LIMIT)
        )
        if self._password is None and self._key is None:
            raise NotConfiguredError(
                f"{context.store} has neither a password nor a key file to open its database",
                remedy="set password in the environment, or key_file",
            )

    def open(self, content: bytes) -> Any:
        """Return a database.

        Raises BackendAuthError if the password is wrong, PluginError if it is damaged.
        """
        if not content.startswith(_KDBX):
            raise PluginError(
                f"the database of {self._context.store} is not a KeePass database",
                remedy="check the setting database; convert a .kdb file in KeePass",
            )
        password = None if self._password is None else self._password.reveal()
        key = None if self._key is None else io.BytesIO(self._key)
        try:
            return PyKeePass(io.BytesIO(content), password=password, keyfile=key)
        except CredentialsError:
            is_refused = True
        # The parser of the library raises what it likes, with parts of the content.
        except Exception:  # noqa: BLE001
            is_refused = False
        if is_refused:
            raise BackendAuthError(
                f"the password or key file of {self._context.store} does not open its database",
                remedy="check both; a database may need a password, a key file, or both",
            )
        raise PluginError(
            f"the database of {self._context.store} is damaged, or its key file is",
            remedy="open it in KeePass, which says more, or restore it",
        )


def dump(database: Any) -> bytes:
    """Return a database as a file, with new seeds and the same settings of its encryption."""
    stream = io.BytesIO()
    database.save(stream)
    return stream.getvalue()


def parse_path(locator: Locator) -> str:
    """Return the path of an entry. Raises ReferenceValueError."""
    if not all(locator.body.split("/")):
        raise ReferenceValueError(
            f"{locator} names no entry", remedy=f"write {locator.name}:GROUP/TITLE#FIELD"
        )
    return locator.body


def find_entry(index: Mapping[str, list[Any]], path: str, locator: Locator) -> Any:
    """Return the entry with a path, or None. Raises ReferenceValueError if there are several."""
    found = index.get(path, [])
    if len(found) > 1:
        raise ReferenceValueError(
            f"{locator} names {len(found)} entries",
            remedy="give each a title or group of its own in KeePass",
        )
    return found[0] if found else None
