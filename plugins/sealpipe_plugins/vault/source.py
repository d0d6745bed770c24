"""`vault:MOUNT/PATH#KEY`: HashiCorp Vault and OpenBao."""

from __future__ import annotations

from sealpipe.plugin import Context, Document, Health, Locator, Source
from sealpipe_plugins.vault.client import Vault
from sealpipe_plugins.vault.path import parse_place
from sealpipe_plugins.vault.settings import VaultSettings


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
