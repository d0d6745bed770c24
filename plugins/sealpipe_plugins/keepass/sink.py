"""`keepass:GROUP/TITLE#FIELD=PROMPT`: fields of an entry of a KeePass database, with its history.

What a field cannot hold, because it is not text, is the attachment of that name.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Sink,
    SinkField,
    UnsupportedError,
    WriteResult,
)
from sealpipe_plugins.confirm import Snapshot, add_marker, require_same, store_and_confirm
from sealpipe_plugins.keepass import entries
from sealpipe_plugins.keepass.database import SIZE_LIMIT, Opener, dump, find_entry, parse_path
from sealpipe_plugins.keepass.settings import KeepassSettings
from sealpipe_plugins.local import files
from sealpipe_plugins.sink_values import values_by_key

_MARKERS_LIMIT: Final = 2000
_PLACEHOLDER: Final = re.compile(
    r"\{(?:(?:REF|CMD|S|URL|T-[A-Z-]+):|(?:TITLE|USERNAME|URL|PASSWORD|NOTES)\})", re.IGNORECASE
)
"""What KeePass replaces: by fields of any entry (also put together from two placeholders), or by a
program's output.
"""
_PROGRAM: Final = "cmd:"
"""How an address begins that KeePass starts as a program."""
_KDBX: Final = 4
_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "make the entry {path} in the KeePass database",
    "replace": "write the entry {path} of the KeePass database; what it was stays in its history",
    "merge": (
        "set fields of the entry {path} of the KeePass database; what it was stays in its history"
    ),
}


class KeepassSink(Sink):
    """The database of the settings.

    It is replaced as a whole, and only if nobody changed it in between.
    """

    def __init__(self, settings: KeepassSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._opener = Opener(settings, context)
        self._path = settings.database.expanduser()
        self._lock = threading.Lock()
        self._known: tuple[bytes, Any] = (b"", None)
        """The file's content when it was last opened or written, and the database in it."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        return _DESCRIPTIONS[mode].format(path=parse_path(locator))

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Write the entry with its marker, check the new database before it replaces the old one,
        and read it back.
        """
        path = parse_path(locator)
        wanted = _parse_fields(locator, fields)

        def read() -> Snapshot:
            content = self._read(locator)
            database = self._open(content)
            entry = find_entry(entries.index_entries(database.tree), path, locator)
            if entry is None:
                return Snapshot(None, raw=content)
            markers = entries.read_fields(entry).get(entries.MARKER, "")
            return Snapshot(_read_values(database, entry, wanted), markers=markers, raw=content)

        def write(snapshot: Snapshot, after: Mapping[str, bytes], _: int) -> str | None:
            markers = add_marker(snapshot.markers, marker, _MARKERS_LIMIT)
            return self._write(locator, path, snapshot.raw, after, markers)

        with self._lock:
            outcome = store_and_confirm(read, write, wanted, locator, mode, marker)
            if outcome.is_written:
                held = read().values or {}
                require_same({key: held.get(key) for key in wanted}, wanted, locator)
        return WriteResult(locator, already=not outcome.is_written)

    def check(self) -> Health:
        """Open the database. Writes nothing."""
        with self._lock:
            database = self._open(
                self._read(Locator(self.context.store, "", text=self.context.store))
            )
        return Health(
            ok=True,
            detail=(
                f"the database opens, entries and groups: {len(entries.list_ids(database.tree))}"
            ),
        )

    def _read(self, locator: Locator) -> bytes:
        file = files.read_state(locator, self._path, limit=SIZE_LIMIT)
        if file is None:
            raise NotConfiguredError(
                f"the database of {self.context.store} does not exist",
                remedy="make it in KeePass, or check database",
            )
        return file.content

    def _open(self, content: bytes) -> Any:
        if self._known[1] is None or content != self._known[0]:
            self._known = (content, self._opener.open(content))
        database = self._known[1]
        if database.version[0] != _KDBX:
            raise UnsupportedError(
                (
                    f"the database of {self.context.store} has the format KDBX "
                    f"{database.version[0]}, which is only read"
                ),
                remedy="change it to KDBX 4 in KeePass",
            )
        return database

    def _write(
        self, locator: Locator, path: str, before: bytes, after: Mapping[str, bytes], markers: str
    ) -> str | None:
        """Write the entry; None if others changed the database in between."""
        database = self._open(before)
        self._known = (b"", None)  # about to be changed
        ids, files_before = (
            entries.list_ids(database.tree),
            entries.list_file_numbers(database.tree),
        )
        entry = find_entry(entries.index_entries(database.tree), path, locator)
        if entry is None:
            entry = entries.add_entry(database.tree, path)
        else:
            entries.save_history(database.tree, entry)
        _set_values(database, entry, after, markers)
        _remove_files(database, files_before - entries.list_file_numbers(database.tree))
        content = dump(database)
        if len(content) > SIZE_LIMIT:
            raise UnsupportedError(
                f"{locator}: the database would be larger than {SIZE_LIMIT // 1024 // 1024} MiB, "
                "which sealpipe reads at most",
                remedy="let the history of its entries have fewer items, or store it elsewhere",
            )
        written = self._opener.open(content)
        stored = find_entry(entries.index_entries(written.tree), path, locator)
        held = {} if stored is None else _read_values(written, stored, after)
        if not ids <= entries.list_ids(written.tree) or held != dict(after):
            raise PluginError(
                f"{locator}: the new database does not hold what was stored, and was discarded",
                remedy="open the database in KeePass, which may repair it",
            )
        with files.translate_errors(locator):
            if not self.context.replace_file(self._path, content, before):
                return None
        self._known = (content, written)
        return ""


def _read_values(database: Any, entry: Any, wanted: Collection[str]) -> dict[str, bytes]:
    """Return the fields of an entry that hold something or are wanted, and wanted attachments.

    KeePass gives each entry some empty fields.
    """
    held, numbers = entries.read_fields(entry), entries.read_file_numbers(entry)
    names = (entries.TITLE, entries.MARKER)
    values = {
        name: value.encode()
        for name, value in held.items()
        if name not in names and (value or name in wanted)
    }
    found = [name for name in wanted if name in numbers and name not in held]
    binaries = database.binaries if found else []
    return values | {
        name: binaries[numbers[name]] for name in found if numbers[name] < len(binaries)
    }


def _set_values(database: Any, entry: Any, values: Mapping[str, bytes], markers: str) -> None:
    """Set fields and attachments: what is an attachment already stays one."""
    held, numbers = entries.read_fields(entry), entries.read_file_numbers(entry)
    attached = {
        name: value
        for name, value in values.items()
        if not _fits_field(value) or (name in numbers and name not in held)
    }
    texts = {name: value.decode() for name, value in values.items() if name not in attached}
    entries.set_fields(entry, {**texts, entries.MARKER: markers})
    for name, value in attached.items():
        entries.set_file(entry, name, database.add_binary(value))


def _remove_files(database: Any, numbers: Collection[int]) -> None:
    """Remove binaries that no entry refers to any more."""
    count = len(database.binaries) if numbers else 0
    for number in sorted(numbers, reverse=True):  # those behind it get smaller numbers
        if number < count:
            database.delete_binary(number)


def _fits_field(value: bytes) -> bool:
    try:
        return entries.is_writable(value.decode())
    except UnicodeDecodeError:
        return False


def _parse_fields(locator: Locator, fields: Sequence[SinkField]) -> dict[str, bytes]:
    """Return the values by field or attachment. A value without a key is the password."""
    named = [SinkField(entries.canonical_name(key or "Password"), value) for key, value in fields]
    wanted = values_by_key(named, locator)
    for name, value in wanted.items():
        if name in (entries.TITLE, entries.MARKER) or not entries.is_writable(name):
            raise ReferenceValueError(
                f"{locator}: no value can be stored as {name!a}", remedy="name another field"
            )
        if not _fits_field(value):
            if entries.is_standard(name):
                raise UnsupportedError(
                    f"{locator}: {name} holds text only, and a value is not UTF-8 or has a "
                    "control character",
                    remedy="name an attachment, which holds any bytes: #keystore.p12=PROMPT",
                )
            continue
        text = value.decode()
        if _PLACEHOLDER.search(text) or (
            name == "URL" and text.strip().lower().startswith(_PROGRAM)
        ):
            raise UnsupportedError(
                (
                    f"{locator}: a value has a placeholder ({{REF:...}}) or a program "
                    "(cmd://), which KeePass would act on"
                ),
                remedy="give it as base64 text and read it with decode=base64",
            )
    return wanted
