"""shelf:NAME#KEY=PROMPT, values by key in an item on the shelf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from sealpipe.plugin import (
    Context,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Sink,
    SinkField,
    UnsupportedError,
    WriteResult,
    merge_fields,
)

from sealpipe_shelf.shelf import Shelf


class Item(NamedTuple):
    """What is on the shelf under a name; `values` are None if nothing is."""

    values: Mapping[str, bytes] | None
    version: str = ""
    label: str = ""


class ShelfSink(Sink):
    """Store values by key. The label of an item holds the marker of the last submission."""

    def __init__(self, settings: Any, context: Context) -> None:
        super().__init__(settings, context)
        self._shelf = Shelf(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        find_path(locator)
        return f"store values in the item {locator.body} of the shelf ({mode})"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        path, wanted = find_path(locator), read_fields(fields)
        before = self._read(path)
        after = merge_fields(before.values, wanted, mode=mode, marked=before.label == marker)
        if after is None:
            return WriteResult(locator, before.version, already=True)
        self._shelf.call(
            "PUT",
            path,
            {key: value.decode() for key, value in after.items()},
            # Refused with 412 if another writer was faster: nothing of theirs is lost.
            {"if-match": before.version or "none", "x-label": marker},
        )
        stored = self._read(path)
        # Another writer may have added keys since.
        if not wanted.items() <= (stored.values or {}).items():
            raise PluginError("it did not read back as written", remedy="check what else writes it")
        return WriteResult(locator, stored.version)

    def _read(self, path: str) -> Item:
        try:
            response = self._shelf.call("GET", path)
        except SecretNotFoundError:
            return Item(None)
        if response.headers["content-type"] != "application/json":
            raise UnsupportedError("the item has no keys", remedy="name another item")
        values = {key: value.encode() for key, value in response.json().items()}
        return Item(values, response.headers["etag"], response.headers.get("x-label", ""))


def find_path(locator: Locator) -> str:
    """Return the item's path: its name is one segment."""
    if locator.body in ("", ".", ".."):
        raise ReferenceValueError("the name is missing", remedy="write shelf:NAME#KEY=PROMPT")
    return "/things/" + quote(locator.body, safe="")


def read_fields(fields: Sequence[SinkField]) -> dict[str, bytes]:
    """Return the values by key: JSON holds text only."""
    values = {}
    for key, value in fields:
        try:
            values[key] = value.reveal().encode()
        except UnicodeError:
            raise UnsupportedError(
                "a value is not Unicode text", remedy="ask for it as base64 text"
            ) from None
        if not key:
            raise ReferenceValueError("the key is missing", remedy="write shelf:NAME#KEY=PROMPT")
    return values
