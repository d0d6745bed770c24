"""`vault:MOUNT/PATH#KEY`: HashiCorp Vault and OpenBao.

Reads every engine, writes key-value engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    Source,
    WriteResult,
)
from sealpipe_plugins.confirm import Snapshot, has_marker, store_and_confirm
from sealpipe_plugins.sink_values import decode_text, values_by_key
from sealpipe_plugins.vault.adapter import Number, encode_exactly
from sealpipe_plugins.vault.client import Vault
from sealpipe_plugins.vault.markers import ENTRY, add_mark
from sealpipe_plugins.vault.path import VaultPath, parse_path
from sealpipe_plugins.vault.settings import VaultSettings
from sealpipe_plugins.vault.writing import KeyState, Kv1Target, open_target

_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "store {path} in Vault at {host} if it does not exist",
    "replace": "store {path} in Vault at {host}, replacing all its keys",
    "merge": "store keys of {path} in Vault at {host}, and keep its other keys",
}


class VaultSource(Source):
    """Key-value engines of both versions, and every other path that can be read."""

    concurrency = (
        4  # more connections slow down a Vault on this machine, and gain little with a distant one
    )

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch the keys of a secret, or another engine's data with the end of its lease."""
        content, lease = self._vault.read(parse_path(locator, self._vault.session.namespace))
        if lease is None:
            return Document(content)
        return Document(content, expires_at=lease.ends_at, remark=lease.remark)

    def check(self) -> Health:
        """Check that Vault responds and accepts our token."""
        return Health(ok=True, detail=self._vault.describe_state())

    def close(self) -> None:
        """Revoke our token."""
        self._vault.session.close()


class VaultSink(Sink):
    """Both versions of the key-value engine.

    Version 2 is written with check-and-set and stores markers.
    """

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        vault_path = self._parse_target(locator)
        namespace_note = f" (namespace {vault_path.namespace})" if vault_path.namespace else ""
        return (
            _DESCRIPTIONS[mode].format(path=vault_path.path, host=self._vault.host) + namespace_note
        )

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store the values.

        The receipt's version is the key's version; empty for an engine without versions.
        """
        vault_path = self._parse_target(locator)
        wanted = _wanted_values(locator, fields)
        target = open_target(self._vault, vault_path)
        content: Mapping[str, Any] = {}

        def read() -> Snapshot:
            state = target.read()
            values = (
                None
                if state.data is None
                else {key: _comparable(value) for key, value in state.data.items()}
            )
            return Snapshot(
                values, _format_version(state.version), (state.custom or {}).get(ENTRY, ""), state
            )

        def write(snapshot: Snapshot, after: Mapping[str, bytes], _tries: int) -> str | None:
            nonlocal content
            state: KeyState = snapshot.raw
            _refuse_api_path(target, state, locator)
            existing = state.data or {}
            content = {
                key: wanted[key].decode() if key in wanted else existing[key] for key in after
            }
            version = target.write(state, content)
            return None if version is None else _format_version(version)

        outcome = store_and_confirm(read, write, wanted, locator, mode, marker)
        state = (
            target.confirm(int(outcome.version or 0), content)
            if outcome.is_written
            else outcome.snapshot.raw
        )
        self._add_mark(target, state, marker)
        return WriteResult(locator, outcome.version, already=not outcome.is_written)

    def check(self) -> Health:
        """Check that Vault responds and accepts our token."""
        return Health(ok=True, detail=self._vault.describe_state())

    def close(self) -> None:
        """Revoke our token."""
        self._vault.session.close()

    def _parse_target(self, locator: Locator) -> VaultPath:
        return parse_path(locator, self._vault.session.namespace)

    def _add_mark(self, target: Kv1Target, state: KeyState, marker: str) -> None:
        if not target.has_markers or has_marker((state.custom or {}).get(ENTRY, ""), marker):
            return
        if not add_mark(target, marker, state.custom or {}):
            self.context.logger.info(
                "%s: stored, without the marker of its submission", target.vault_path.reference
            )


def _wanted_values(locator: Locator, fields: Sequence[SinkField]) -> dict[str, bytes]:
    """Return the values by key.

    Raises ReferenceValueError (invalid key), UnsupportedError (value is not text).
    """
    for field in fields:
        if not field.key or any("\ud800" <= character <= "\udfff" for character in field.key):
            raise ReferenceValueError(
                f"{locator}: Vault stores each value under a key",
                remedy="name the key to store it under: #password=PROMPT",
            )
    wanted = values_by_key(fields, locator)
    for value in wanted.values():
        decode_text(value, locator)
    return wanted


def _comparable(value: Any) -> bytes:
    """Return a value as bytes for comparison.

    A value that is not text never equals a value to store.
    """
    if isinstance(value, str) and not isinstance(value, Number):
        return value.encode("utf-8", "surrogatepass")
    return b"\xff" + encode_exactly(value).encode()


def _refuse_api_path(target: Kv1Target, state: KeyState, locator: Locator) -> None:
    """Refuse a new key below data/ or metadata/: these prefixes belong to API paths."""
    if target.has_markers and state.version == 0 and target.path.startswith(("data/", "metadata/")):
        raise ReferenceValueError(
            (
                f"{locator}: begins with data/ or metadata/ after its mount, which are part of "
                "the API's path only"
            ),
            remedy="leave that part out",
        )


def _format_version(version: int) -> str:
    return str(version) if version else ""
