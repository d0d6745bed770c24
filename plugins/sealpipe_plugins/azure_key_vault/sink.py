"""`azure-kv:VAULT/NAME`: Azure Key Vault.

Without a key the value is the whole secret; keys are members.

Key Vault has no condition for a write. After ours, the newest version is read: if it is another
writer's, ours is made again from it, so that whoever merges last keeps the members of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sealpipe.plugin import Context, Health, Locator, UnsupportedError
from sealpipe_plugins.azure_key_vault.client import SYSTEM, Bundle, KeyVault, parse_bundle
from sealpipe_plugins.azure_key_vault.errors import refuse
from sealpipe_plugins.azure_key_vault.settings import KeyVaultSettings, SecretName, parse_secret
from sealpipe_plugins.cloud import Job, SecretWrite, VersionedSink
from sealpipe_plugins.confirm import Snapshot, add_marker, require_same
from sealpipe_plugins.secret_documents import as_bytes, next_document, read_values
from sealpipe_plugins.sink_values import decode_text

MAX_SIZE: Final = 25600
"""Maximum bytes of a secret."""
TAG: Final = "sealpipe-submissions"
"""The tag that holds the markers, newest last."""
_TAG_LIMIT: Final = 256


class KeyVaultSink(VersionedSink):
    """Secrets, by vault and name. The marker is in a tag, written in the same call as the value."""

    def __init__(self, settings: KeyVaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vaults = KeyVault(settings, context)

    def name_secret(self, locator: Locator) -> tuple[str, str]:
        """Return the name, and the vault."""
        secret = parse_secret(locator, self.settings, self.context.store)
        return secret.name, f"{SYSTEM}, {secret.vault}"

    def open_secret(self, job: Job) -> _SecretUpdate:
        """Return a write to the secret."""
        return _SecretUpdate(
            self._vaults, parse_secret(job.locator, self.settings, self.context.store), job
        )

    def check(self) -> Health:
        """Check the login. Changes nothing."""
        return self._vaults.check()


class _SecretUpdate(SecretWrite):
    """A write to one secret."""

    def __init__(self, vaults: KeyVault, secret: SecretName, job: Job) -> None:
        super().__init__(job)
        self._vaults, self._secret = vaults, secret
        self.next_value(None)  # an invalid value is rejected before the first call

    def read(self) -> Snapshot:
        """Read the newest version with its tags."""
        bundle = self._vaults.read(self._secret, "", self._locator)
        if bundle is None:
            return Snapshot(None)
        existing = read_values(bundle.value, whole="" in self._wanted)
        return Snapshot(existing, bundle.version, bundle.tags.get(TAG, ""), bundle)

    def write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],  # noqa: ARG002
        tries: int,  # noqa: ARG002
    ) -> str | None:
        """Add a version with value and marker. Return None if another writer added one since."""
        existing: Bundle | None = snapshot.raw
        value = self.next_value(existing)
        body: dict[str, Any] = {"value": value, "tags": self._tags_with(existing)}
        if existing is not None and existing.content_type is not None:
            body["contentType"] = existing.content_type
        reply = self._vaults.call("PUT", self._secret, "", body, writes=True)
        version = parse_bundle(
            refuse(reply, self._locator, "set", "written"), self._locator
        ).version
        newest = self._vaults.read(self._secret, "", self._locator)
        if newest is None or newest.version != version:
            return None
        require_same(newest.value, value, self._locator)
        self.is_marked = True
        return version

    def next_value(self, existing: Bundle | None) -> str:
        """Return the value of the next version.

        Raises UnsupportedError for one that Key Vault does not store.
        """
        following = next_document(
            None if existing is None else existing.value, self._wanted, self._mode, self._locator
        )
        data = as_bytes(following)
        if not 0 < len(data) <= MAX_SIZE:
            raise UnsupportedError(
                f"{self._locator}: Key Vault stores 1 to {MAX_SIZE} bytes in a secret",
                remedy="store it elsewhere",
            )
        return decode_text(data, self._locator)

    def add_marker(self, snapshot: Snapshot) -> None:
        """Add the marker to the tags of a version that had the value before."""
        existing: Bundle = snapshot.raw
        tags = {"tags": self._tags_with(existing)}
        reply = self._vaults.call("PATCH", self._secret, existing.version, tags)
        refuse(reply, self._locator, "set", "marked, though it holds the value")

    def _tags_with(self, existing: Bundle | None) -> dict[str, str]:
        tags = {} if existing is None else dict(existing.tags)
        return {**tags, TAG: add_marker(tags.get(TAG, ""), self._marker, _TAG_LIMIT)}
