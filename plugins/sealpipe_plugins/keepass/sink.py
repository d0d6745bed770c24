"""`keepass:GROUP/TITLE#FIELD=PROMPT`: fields of an entry of a KeePass database, with its
history.
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
from sealpipe_plugins.sink_values import decode_text, values_by_key

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
            entry = find_entry(entries.index_entries(self._open(content).tree), path, locator)
            if entry is None:
                return Snapshot(None, raw=content)
            held = entries.read_fields(entry)
            return Snapshot(
                _as_values(held, wanted), markers=held.get(entries.MARKER, ""), raw=content
            )

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
        ids, entry = (
            entries.list_ids(database.tree),
            find_entry(entries.index_entries(database.tree), path, locator),
        )
        if entry is None:
            entry = entries.add_entry(database.tree, path)
        else:
            entries.save_history(database.tree, entry)
        texts = {key: value.decode() for key, value in after.items()}
        entries.set_fields(entry, {**texts, entries.MARKER: markers})
        content = dump(database)
        written = self._opener.open(content)
        stored = find_entry(entries.index_entries(written.tree), path, locator)
        held = {} if stored is None else _as_values(entries.read_fields(stored), after)
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


def _as_values(held: Mapping[str, str], wanted: Collection[str]) -> dict[str, bytes]:
    """Return the fields of an entry that hold something or are wanted.

    KeePass gives each entry some empty ones.
    """
    names = (entries.TITLE, entries.MARKER)
    return {
        name: value.encode()
        for name, value in held.items()
        if name not in names and (value or name in wanted)
    }


def _parse_fields(locator: Locator, fields: Sequence[SinkField]) -> dict[str, bytes]:
    """Return the values by field. A value without a key is the password."""
    named = [SinkField(entries.canonical_name(key or "Password"), value) for key, value in fields]
    wanted = values_by_key(named, locator)
    for name, value in wanted.items():
        if name in (entries.TITLE, entries.MARKER) or not entries.is_writable(name):
            raise ReferenceValueError(
                f"{locator}: no value can be stored as {name!a}", remedy="name another field"
            )
        text = decode_text(value, locator)
        if _PLACEHOLDER.search(text) or (
            name == "URL" and text.strip().lower().startswith(_PROGRAM)
        ):
            raise UnsupportedError(
                (
                    f"{locator}: a value has a placeholder ({{REF:...}}) or a program "
                    "(cmd://), which KeePass would act on"
                ),
                remedy="ask for it as base64 text and read it with decode=base64",
            )
        if not entries.is_writable(text):
            raise UnsupportedError(
                f"{locator}: a value has a control character, which a KeePass database cannot hold",
                remedy="ask for it as base64 text and read it with decode=base64",
            )
    return wanted
