"""`azure-kv:VAULT/NAME`: Azure Key Vault.

Text that is a JSON object becomes a map; with `?raw=1` it stays text.
"""

from __future__ import annotations

from typing import ClassVar

from sealpipe.plugin import Context, Document, Health, Locator, SecretNotFoundError, Source
from sealpipe_plugins.azure_key_vault.client import KeyVault
from sealpipe_plugins.azure_key_vault.settings import KeyVaultSettings, parse_secret, parse_version
from sealpipe_plugins.secret_documents import make_source_document


class KeyVaultSource(Source):
    """Secrets, by vault and name."""

    concurrency: ClassVar[int] = 8

    def __init__(self, settings: KeyVaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vaults = KeyVault(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """Fetch the newest value, or that of a version."""
        secret = parse_secret(locator, self.settings, self.context.store)
        bundle = self._vaults.read(secret, parse_version(locator), locator)
        if bundle is not None:
            return make_source_document(bundle.value, locator)
        if self._vaults.is_deleted(secret):
            raise SecretNotFoundError(
                f"{locator} is deleted and can be recovered",
                remedy="recover it: `az keyvault secret recover`",
            )
        raise SecretNotFoundError(
            f"{locator} does not exist, or has no such version",
            remedy="check the vault, the name and the version",
        )

    def check(self) -> Health:
        """Check the login. Reads no secret."""
        return self._vaults.check()
