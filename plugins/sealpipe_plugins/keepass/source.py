"""`keepass:GROUP/TITLE#FIELD`: an entry of a KeePass database. A run opens the database once."""

from __future__ import annotations

import threading
from typing import Any

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    PluginError,
    SecretNotFoundError,
    Source,
)
from sealpipe_plugins.keepass.database import SIZE_LIMIT, Opener, find_entry, parse_path
from sealpipe_plugins.keepass.entries import (
    EntryFields,
    index_entries,
    read_fields,
    read_file_numbers,
)
from sealpipe_plugins.keepass.settings import KeepassSettings
from sealpipe_plugins.setting_files import read_setting_file


class KeepassSource(Source):
    """The database of the settings, as it was when it was opened."""

    def __init__(self, settings: KeepassSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._opener = Opener(settings, context)
        self._lock = threading.Lock()
        self._database: Any = None
        self._index: dict[str, list[Any]] = {}

    def fetch(self, locator: Locator) -> Document:
        """Return an entry's fields, and its attachments by name.

        References to fields of others are followed.
        """
        path = parse_path(locator)
        with self._lock:
            database = self._open()
            entry = find_entry(self._index, path, locator)
            if entry is None:
                raise SecretNotFoundError(
                    f"{locator} is not in the database",
                    remedy="check the groups below the root, and the title",
                )
            fields = {
                name: _follow(database, value, locator)
                for name, value in read_fields(entry).items()
            }
            binaries = database.binaries if entry.find("Binary") is not None else []
            numbers = read_file_numbers(entry)
            files = {
                name: binaries[number] for name, number in numbers.items() if number < len(binaries)
            }
        return Document(EntryFields(fields, files))

    def check(self) -> Health:
        """Open the database."""
        with self._lock:
            major, minor = self._open().version
        return Health(ok=True, detail=f"the database opens (KDBX {major}.{minor})")

    def _open(self) -> Any:
        if self._database is None:
            file = self.settings.database
            self._database = self._opener.open(
                read_setting_file(file, "database", self.context, SIZE_LIMIT)
            )
            self._index = index_entries(self._database.tree)
        return self._database


def _follow(database: Any, value: str, locator: Locator) -> str:
    """Return a value, with what it refers to in other entries ({REF:...}) in its place."""
    if "{REF:" not in value:
        return value
    try:
        followed = database.deref(value)
    except Exception:  # noqa: BLE001 - of a wrong reference the library raises what it likes
        followed = None
    if isinstance(followed, str):
        return followed
    raise PluginError(
        f"{locator} refers to an entry that does not exist", remedy="correct the entry in KeePass"
    )
