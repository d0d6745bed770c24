"""Writes to Vault's key-value engines.

Read first, then written with check-and-set if the engine supports it.

The loop is in confirm.py. A write whose response was lost is handled here, because the loop
compares only the newest values: here the version that the write would have created is read, even if
others have written since.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

from hvac.api.secrets_engines import KvV2
from hvac.exceptions import VaultError

from sealpipe.plugin import PluginError, UnavailableError, UnknownOutcomeError, UnsupportedError
from sealpipe_plugins.vault.adapter import VaultAdapter, as_number, encode_exactly, get_member
from sealpipe_plugins.vault.client import Vault
from sealpipe_plugins.vault.errors import has_words, write_error
from sealpipe_plugins.vault.path import VaultPath

READ_DELAYS: Final = (0.0, 0.1, 0.4, 1.0)
"""Seconds before each read that confirms a write: a standby that serves reads may lag behind."""


class KeyState(NamedTuple):
    """The state of a key: its data (None: nothing), and its version for check-and-set (0: none).

    `custom` is its custom metadata; None if the engine has none.
    """

    data: Mapping[str, Any] | None
    version: int = 0
    custom: Mapping[str, str] | None = None


class Kv1Target:
    """A key in an engine without versions, which has no protection against concurrent writers."""

    has_markers: ClassVar[bool] = False
    """Whether the engine can store markers."""

    def __init__(self, vault: Vault, vault_path: VaultPath, mount: str) -> None:
        self.vault, self.vault_path, self.mount = vault, vault_path, mount
        self.path = vault_path.path.removeprefix(f"{mount}/")

    def read(self) -> KeyState:
        """Read the current state."""
        response = self._request(
            self.vault_path.path, lambda adapter: adapter.get(f"/v1/{quote(self.vault_path.path)}")
        )
        data = get_member(response, "data")
        return KeyState(data if isinstance(data, dict) else None)

    def write(self, before: KeyState, after: Mapping[str, Any]) -> int | None:
        """Write and return the version (0: none), or None if another writer was faster.

        Raises UnavailableError if it was not written, UnknownOutcomeError if the outcome is
        unknown.
        """
        lost_error: UnavailableError
        try:
            return self._write(before, after)
        except UnavailableError as error:
            lost_error = error
        state = self._read_after_lost_response(before)
        if state is None:
            raise UnknownOutcomeError(
                (
                    f"{self.vault_path.reference}: Vault did not respond to the write, so its "
                    "outcome is unknown"
                ),
                remedy="run it again when Vault responds: nothing is stored twice",
            )
        if state.data is not None and is_same_json(state.data, after):
            return state.version
        if state.version == before.version and is_same_json(state.data, before.data):
            raise lost_error
        return None

    def confirm(self, version: int, after: Mapping[str, Any]) -> KeyState:
        """Read back the written values. Raises PluginError if they differ."""
        reference = self.vault_path.reference
        for delay in READ_DELAYS:
            time.sleep(delay)
            state = self._read_version(version)
            if state.data is None:
                continue  # accepted, but not visible yet
            if is_same_json(state.data, after):
                return state
            raise PluginError(
                f"{reference}: the value read back from Vault is not the one that was stored",
                remedy="check for a concurrent write",
            )
        raise UnknownOutcomeError(
            f"{reference}: Vault accepted the write, but the value cannot be read back",
            remedy="check whether it was deleted; run it again: nothing is stored twice",
        )

    def _read_version(self, _version: int) -> KeyState:
        return self.read()

    def _write(self, before: KeyState, after: Mapping[str, Any]) -> int | None:
        path = self.vault_path.path
        self._send(
            path, before, lambda adapter: adapter.post(f"/v1/{quote(path)}", json=dict(after))
        )
        return 0

    def _read_after_lost_response(self, before: KeyState) -> KeyState | None:
        """Return the state after a write without a response; None if it cannot be read."""
        for delay in READ_DELAYS:
            time.sleep(delay)
            self.vault.session.server.retry_at_once()
            try:
                return self._read_next_version(before)
            except PluginError:
                continue
        return None

    def _read_next_version(self, _before: KeyState) -> KeyState:
        return self.read()

    def _request(self, path: str, request: Callable[[VaultAdapter], Any]) -> Any:
        """Return the body of a response, also of a 404 if nothing exists."""
        try:
            return self.vault.call(self.vault_path, path, request)
        except VaultError as error:
            return error.json

    def _send(self, path: str, before: KeyState, request: Callable[[VaultAdapter], Any]) -> Any:
        """Return the response to a write; None if check-and-set failed."""
        capability = "create" if before.data is None else "update"
        try:
            return self.vault.call(
                self.vault_path,
                path,
                request,
                capability=capability,
                passed_statuses=(400, 404, 405, 413, 500),
            )
        except VaultError as error:
            if has_words(error, "check-and-set parameter did not match"):
                return None
            failure = write_error(error, self.vault_path.reference, self.vault_path.namespace)
        raise failure


class Kv2Target(Kv1Target):
    """A key in an engine with versions: a write names the version it follows."""

    has_markers = True

    def read(self) -> KeyState:
        """Read the newest version; a deleted one counts as no data, but keeps its number."""
        return self._read_data(None)

    def _read_version(self, version: int) -> KeyState:
        return self._read_data(version)

    def _read_next_version(self, before: KeyState) -> KeyState:
        # This version was made by this write or one with the same content; later versions are from
        # others.
        written = self._read_data(before.version + 1)
        return self.read() if written.data is None else written

    def _read_data(self, version: int | None) -> KeyState:
        def request(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).read_secret_version(
                self.path, version=version, mount_point=self.mount, raise_on_deleted_version=True
            )

        response = self._request(f"{self.mount}/data/{self.path}", request)
        data, metadata = (
            get_member(response, "data", "data"),
            get_member(response, "data", "metadata"),
        )
        custom = get_member(metadata, "custom_metadata")
        if isinstance(metadata, dict) and "custom_metadata" not in metadata:
            custom_metadata = None  # an old Vault without custom metadata
        else:
            custom_metadata = custom if isinstance(custom, dict) else {}
        return KeyState(
            data if isinstance(data, dict) else None,
            as_number(get_member(metadata, "version")),
            custom_metadata,
        )

    def _write(self, before: KeyState, after: Mapping[str, Any]) -> int | None:
        def request(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).create_or_update_secret(
                self.path, dict(after), cas=before.version, mount_point=self.mount
            )

        response = self._send(f"{self.mount}/data/{self.path}", before, request)
        return None if response is None else as_number(get_member(response, "data", "version"))


def open_target(vault: Vault, vault_path: VaultPath) -> Kv1Target:
    """Return a target for writing.

    Raises UnsupportedError if its engine is not a key-value engine.
    """
    mount = vault.find_mount(vault_path)
    if mount.kind in ("kv", "generic"):
        return (Kv2Target if mount.versioned else Kv1Target)(vault, vault_path, mount.path)
    if mount.kind == "cubbyhole":
        raise UnsupportedError(
            f"{vault_path.reference}: a cubbyhole is private to its token and ends with it",
            remedy="name a path in a key-value engine: see `vault secrets list`",
        )
    raise UnsupportedError(
        f"{vault_path.reference}: the engine at {mount.path}/ is not a key-value engine",
        remedy="name a path in a key-value engine: see `vault secrets list`",
    )


def is_same_json(left: Mapping[str, Any] | None, right_side: Mapping[str, Any] | None) -> bool:
    """Return whether two maps are equal as JSON: 5 is not "5"."""
    return encode_exactly(left) == encode_exactly(right_side)
