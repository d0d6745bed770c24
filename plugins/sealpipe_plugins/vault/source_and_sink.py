"""`vault:MOUNT/PATH#KEY`: HashiCorp Vault and OpenBao. Every engine is read, key-value engines are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    Mode,
    Receipt,
    ReferenceValueError,
    Sink,
    Source,
    Stored,
)
from sealpipe_plugins.confirm import Snapshot, has_marker, store_and_confirm
from sealpipe_plugins.sink_values import decode_text, values_by_key
from sealpipe_plugins.vault.adapter import Number, encode_exactly
from sealpipe_plugins.vault.client import Vault
from sealpipe_plugins.vault.markers import ENTRY, mark
from sealpipe_plugins.vault.path import Place, parse_place
from sealpipe_plugins.vault.settings import VaultSettings
from sealpipe_plugins.vault.writing import Found, Kv1Target, open_target

_DONE: Final[Mapping[Mode, str]] = {
    "create": "store {path} in Vault at {host}, where nothing may be yet",
    "replace": "store {path} in Vault at {host}, in place of all keys that are there",
    "merge": "store keys of {path} in Vault at {host}, and keep its other keys",
}


class VaultSource(Source):
    """Key-value engines of both versions, and every other path that can be read."""

    concurrency = 4  # more slows down a Vault on this machine, and gains little at one far away

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """The keys of a secret, or all that another engine answers; with its lease's end where it has one."""
        content, lease = self._vault.read(parse_place(locator, self._vault.session.namespace))
        if lease is None:
            return Document(content)
        return Document(content, expires_at=lease.ends, remark=lease.remark)

    def check(self) -> Health:
        """Whether Vault answers and takes our token, and what this may do."""
        return Health(ok=True, detail=self._vault.describe_state())

    def close(self) -> None:
        """Revoke what we logged in for, and hang up."""
        self._vault.session.close()


class VaultSink(Sink):
    """Both versions of the key-value engine. One with versions is written with check-and-set, and marked."""

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """As the base says."""
        where = self._place(locator)
        inside = f" (namespace {where.namespace})" if where.namespace else ""
        return _DONE[mode].format(path=where.path, host=self._vault.host) + inside

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        """As the base says. The receipt's version is that of the key; empty in an engine without versions."""
        where = self._place(locator)
        wanted = _wanted(locator, fields)
        target = open_target(self._vault, where)
        content: Mapping[str, Any] = {}

        def look() -> Snapshot:
            found = target.look()
            values = None if found.data is None else {key: _compared(value) for key, value in found.data.items()}
            return Snapshot(values, _shown(found.version), (found.custom or {}).get(ENTRY, ""), found)

        def write(snapshot: Snapshot, after: Mapping[str, bytes], _tries: int) -> str | None:
            nonlocal content
            found: Found = snapshot.raw
            _refuse_api_path(target, found, locator)
            there = found.data or {}
            content = {key: wanted[key].decode() if key in wanted else there[key] for key in after}
            version = target.write(found, content)
            return None if version is None else _shown(version)

        outcome = store_and_confirm(look, write, wanted, locator, mode, marker)
        found = target.confirm(int(outcome.version or 0), content) if outcome.wrote else outcome.snapshot.raw
        self._mark(target, found, marker)
        return Receipt(locator, outcome.version, already=not outcome.wrote)

    def check(self) -> Health:
        """Whether Vault answers and takes our token, and what this may do."""
        return Health(ok=True, detail=self._vault.describe_state())

    def close(self) -> None:
        """Revoke what we logged in for, and hang up."""
        self._vault.session.close()

    def _place(self, locator: Locator) -> Place:
        return parse_place(locator, self._vault.session.namespace)

    def _mark(self, target: Kv1Target, found: Found, marker: str) -> None:
        if not target.has_markers or has_marker((found.custom or {}).get(ENTRY, ""), marker):
            return
        if not mark(target, marker, found.custom or {}):
            self.context.logger.info("%s: stored, without a mark of its submission", target.place.where)


def _wanted(locator: Locator, fields: Sequence[Stored]) -> dict[str, bytes]:
    """The values by key. ReferenceValueError for a key that cannot be one, UnsupportedError for what is not text."""
    for field in fields:
        if not field.key or any("\ud800" <= sign <= "\udfff" for sign in field.key):
            raise ReferenceValueError(
                f"{locator}: Vault stores each value under a key",
                remedy="name the key to store it under: #password=PROMPT",
            )
    wanted = values_by_key(fields, locator)
    for value in wanted.values():
        decode_text(value, locator)
    return wanted


def _compared(value: Any) -> bytes:
    """A value as bytes to compare; what is not text differs from all that anybody could want to store."""
    if isinstance(value, str) and not isinstance(value, Number):
        return value.encode("utf-8", "surrogatepass")
    return b"\xff" + encode_exactly(value).encode()


def _refuse_api_path(target: Kv1Target, found: Found, locator: Locator) -> None:
    """Refuse a new key below data/: that belongs to the API's path, and nobody means it."""
    if target.has_markers and found.version == 0 and target.path.startswith(("data/", "metadata/")):
        raise ReferenceValueError(
            f"{locator}: begins with data/ or metadata/ behind its mount, which belong to the API's path",
            remedy="leave that part out",
        )


def _shown(version: int) -> str:
    return str(version) if version else ""
