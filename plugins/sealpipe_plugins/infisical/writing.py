"""Writes the secrets of one folder one by one, with the marker in their metadata, and confirms.

Creating one fails if it exists. Infisical has no condition for changing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from sealpipe.plugin import AccessDeniedError, Locator, Mode, SecretNotFoundError, UnsupportedError
from sealpipe_plugins.confirm import (
    Snapshot,
    add_marker,
    entries_snapshot,
    has_marker,
    require_same,
    store_and_confirm,
)
from sealpipe_plugins.http_errors import Refusals
from sealpipe_plugins.infisical.api import NAME, Infisical
from sealpipe_plugins.infisical.folders import (
    Folder,
    FolderSecret,
    explain_refusals,
    read_folder,
    secret_path,
)

ENTRY: Final = "sealpipe.dev/submissions"
"""Key of the metadata that lists the markers, separated by spaces."""
MAX_ENTRY: Final = 1020
"""Maximum characters of a metadata value."""

_HIDDEN: Final = b"\0hidden"
"""Stands for a value that the identity cannot read: no value to store equals it."""

Content = Mapping[str, FolderSecret]


class FolderWrite:
    """A write of some secrets of a folder, by name."""

    def __init__(
        self, infisical: Infisical, folder: Folder, values: Mapping[str, str], marker: str
    ) -> None:
        self._infisical = infisical
        self._folder = folder
        self._values = values
        self._wanted = {key: value.encode() for key, value in values.items()}
        self._marker = marker

    def store(self, target: Locator, mode: Mode) -> tuple[bool, bool]:
        """Return whether the values were read back, and whether they were there before."""
        outcome = store_and_confirm(
            self._read, self._write, self._wanted, target, mode, self._marker
        )
        if not outcome.is_written:
            self._add_markers(outcome.snapshot.raw)
            return True, True
        written = [key for key in self._wanted if not self._is_marked(outcome.snapshot.raw, key)]
        secrets = self._read_secrets()
        read_back = {key: _comparable(secrets[key]) for key in written if key in secrets}
        hidden = {key for key, value in read_back.items() if value == _HIDDEN}
        expected = {key: _HIDDEN if key in hidden else self._wanted[key] for key in written}
        require_same(read_back, expected, target)
        return not hidden, False

    def _read_secrets(self) -> Content:
        return read_folder(self._infisical, self._folder, is_expanded=False)

    def _read(self) -> Snapshot:
        secrets = self._read_secrets()
        return entries_snapshot(self._present_values(secrets), self._wanted, secrets)

    def _write(self, snapshot: Snapshot, _after: Mapping[str, bytes], _tries: int) -> str | None:
        secrets: Content = snapshot.raw
        present = self._present_values(secrets)
        for key, value in self._values.items():
            if present.get(key) == self._wanted[key]:
                continue
            members = {"secretValue": value, **self._metadata(secrets.get(key))}
            try:
                self._send("PATCH" if key in secrets else "POST", key, members)
            except (UnsupportedError, SecretNotFoundError):
                # Infisical also refuses a secret that was created or deleted since.
                if (key in secrets) == (key in self._read_secrets()):
                    raise
                return None
        return ""

    def _add_markers(self, secrets: Content) -> None:
        for key in self._values:
            metadata = self._metadata(secrets[key])
            if not metadata or self._is_marked(secrets, key):
                continue
            with suppress(AccessDeniedError, UnsupportedError):  # the value is there all the same
                self._send("PATCH", key, metadata)

    def _send(self, method: str, key: str, members: Mapping[str, Any]) -> None:
        rejected = (
            UnsupportedError,
            f"rejects {key} of {self._folder}",
            "check its name, the length of its value, and whether the folder exists",
        )
        refusals: Refusals = {
            **dict.fromkeys((400, 409, 422), rejected),
            **explain_refusals(self._folder, "write"),
        }
        body = {**self._folder.members("projectSlug"), "type": "shared", **members}
        reply = self._infisical.request(method, secret_path(key), members=body, refusals=refusals)
        if reply.member("approval") is not None:
            raise UnsupportedError(
                (
                    f"{NAME} did not store {key} of {self._folder}: a policy wants the change "
                    "to be approved"
                ),
                remedy=(
                    "approve it there and run it again, or store it in a folder without such a "
                    "policy"
                ),
            )

    def _metadata(self, secret: FolderSecret | None) -> dict[str, Any]:
        """Return the metadata with the marker.

        A write replaces all of it, so encrypted metadata is left alone.
        """
        others = (
            [] if secret is None else [each for each in secret.metadata if each.get("key") != ENTRY]
        )
        if any(each.get("isEncrypted") is True for each in others):
            return {}
        markers = add_marker(_markers_of(secret), self._marker, MAX_ENTRY)
        return {"secretMetadata": [*others, {"key": ENTRY, "value": markers}]}

    def _present_values(self, secrets: Content) -> dict[str, bytes]:
        """Return the values of those secrets that exist.

        One with the marker counts as having the value to store.
        """
        return {
            key: value if self._is_marked(secrets, key) else _comparable(secrets[key])
            for key, value in self._wanted.items()
            if key in secrets
        }

    def _is_marked(self, secrets: Content, key: str) -> bool:
        return has_marker(_markers_of(secrets.get(key)), self._marker)


def _markers_of(secret: FolderSecret | None) -> str:
    metadata = () if secret is None else secret.metadata
    return next((str(each.get("value") or "") for each in metadata if each.get("key") == ENTRY), "")


def _comparable(secret: FolderSecret) -> bytes:
    return _HIDDEN if secret.value is None else secret.value.encode("utf-8", "surrogatepass")
