"""Writes to the key-value engines of Vault: looked up first, with check-and-set where the engine has it.

The loop is that of confirm.py. What follows a write whose answer was lost is here, because the loop compares the newest
values only: here the version that the write would have made is read, even if others have written after it.
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
from sealpipe_plugins.vault.path import Place

PAUSES: Final = (0.0, 0.1, 0.4, 1.0)
"""Seconds before each look for a write: a standby that answers reads may be behind the one that took it."""


class Found(NamedTuple):
    """What a place holds: None for nothing. `version` is what check-and-set wants, 0 for none.

    `custom` is its custom metadata; None where the engine keeps none.
    """

    data: Mapping[str, Any] | None
    version: int = 0
    custom: Mapping[str, str] | None = None


class Kv1Target:
    """A place in an engine without versions. Nothing keeps two writers apart there."""

    has_markers: ClassVar[bool] = False
    """Whether there is a place beside it for the marks of submissions."""

    def __init__(self, vault: Vault, place: Place, mount: str) -> None:
        self.vault, self.place, self.mount = vault, place, mount
        self.path = place.path.removeprefix(f"{mount}/")

    def look(self) -> Found:
        """What is there now."""
        answer = self._read(self.place.path, lambda adapter: adapter.get(f"/v1/{quote(self.place.path)}"))
        data = get_member(answer, "data")
        return Found(data if isinstance(data, dict) else None)

    def write(self, before: Found, after: Mapping[str, Any]) -> int | None:
        """Store it: the number of its version, 0 for none. None where another was quicker: then look again.

        Raises UnavailableError where it is not there, UnknownOutcomeError where that cannot be told.
        """
        lost: UnavailableError
        try:
            return self._write(before, after)
        except UnavailableError as error:
            lost = error
        found = self._look_for(before)
        if found is None:
            raise UnknownOutcomeError(
                f"{self.place.where}: Vault's answer to the write was lost, and it does not tell whether it is there",
                remedy="run it again once Vault answers: what is there is not stored twice",
            )
        if found.data is not None and same(found.data, after):
            return found.version
        if found.version == before.version and same(found.data, before.data):
            raise lost
        return None

    def confirm(self, version: int, after: Mapping[str, Any]) -> Found:
        """What was stored, read back. Raises PluginError where it is something else."""
        where = self.place.where
        for pause in PAUSES:
            time.sleep(pause)
            found = self._written(version)
            if found.data is None:
                continue  # taken, and not to be seen yet
            if same(found.data, after):
                return found
            raise PluginError(
                f"{where}: what Vault gives back is not what was stored",
                remedy="somebody may have written at the same time, or Vault keeps some text otherwise: look at it",
            )
        raise UnknownOutcomeError(
            f"{where}: Vault took the write and does not show it",
            remedy="see whether it was deleted at once; run it again: what is there is not stored twice",
        )

    def _written(self, _version: int) -> Found:
        return self.look()

    def _write(self, before: Found, after: Mapping[str, Any]) -> int | None:
        path = self.place.path
        self._send(path, before, lambda adapter: adapter.post(f"/v1/{quote(path)}", json=dict(after)))
        return 0

    def _look_for(self, before: Found) -> Found | None:
        """What is there after a write whose answer was lost; None where nobody tells."""
        for pause in PAUSES:
            time.sleep(pause)
            self.vault.session.pool.retry_at_once()
            try:
                return self._after(before)
            except PluginError:
                continue
        return None

    def _after(self, _before: Found) -> Found:
        return self.look()

    def _read(self, path: str, ask: Callable[[VaultAdapter], Any]) -> Any:
        """An answer; what came with the 404 where nothing is there."""
        try:
            return self.vault.call(self.place, path, ask)
        except VaultError as error:
            return error.json

    def _send(self, path: str, before: Found, ask: Callable[[VaultAdapter], Any]) -> Any:
        """The answer to a write; None where check-and-set failed."""
        right = "create" if before.data is None else "update"
        try:
            return self.vault.call(self.place, path, ask, right=right, through=(400, 404, 405, 413, 500))
        except VaultError as error:
            if has_words(error, "check-and-set parameter did not match"):
                return None
            failure = write_error(error, self.place.where, self.place.namespace)
        raise failure


class Kv2Target(Kv1Target):
    """A place in an engine with versions: a write names the version that it comes after."""

    has_markers = True

    def look(self) -> Found:
        """The newest version: one that is deleted counts as nothing there, and keeps its number."""
        return self._version(None)

    def _written(self, version: int) -> Found:
        return self._version(version)

    def _after(self, before: Found) -> Found:
        # Only we, or one who stored the same, can have written it, and whatever came after it is another's.
        ours = self._version(before.version + 1)
        return self.look() if ours.data is None else ours

    def _version(self, version: int | None) -> Found:
        def ask(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).read_secret_version(
                self.path, version=version, mount_point=self.mount, raise_on_deleted_version=True
            )

        answer = self._read(f"{self.mount}/data/{self.path}", ask)
        data, kept = get_member(answer, "data", "data"), get_member(answer, "data", "metadata")
        custom = get_member(kept, "custom_metadata")
        if isinstance(kept, dict) and "custom_metadata" not in kept:
            known = None  # a Vault from before there was any
        else:
            known = custom if isinstance(custom, dict) else {}
        return Found(data if isinstance(data, dict) else None, as_number(get_member(kept, "version")), known)

    def _write(self, before: Found, after: Mapping[str, Any]) -> int | None:
        def ask(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).create_or_update_secret(
                self.path, dict(after), cas=before.version, mount_point=self.mount
            )

        answer = self._send(f"{self.mount}/data/{self.path}", before, ask)
        return None if answer is None else as_number(get_member(answer, "data", "version"))


def open_target(vault: Vault, place: Place) -> Kv1Target:
    """Return a place for writing. UnsupportedError where its engine is not a key-value engine."""
    mount = vault.mount(place)
    if mount.kind in ("kv", "generic"):
        return (Kv2Target if mount.versioned else Kv1Target)(vault, place, mount.path)
    if mount.kind == "cubbyhole":
        raise UnsupportedError(
            f"{place.where}: a cubbyhole ends with its token, and nobody else can read it",
            remedy="name a path in a key-value engine: see `vault secrets list`",
        )
    raise UnsupportedError(
        f"{place.where}: the engine at {mount.path}/ is no key-value engine, which alone stores what it is given",
        remedy="name a path in one: see `vault secrets list`",
    )


def same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether two maps are the same JSON: 5 is not "5"."""
    return encode_exactly(one) == encode_exactly(other)
