"""`keyring:SERVICE/USERNAME`: an entry of the system's keyring."""

from __future__ import annotations

from sealpipe.plugin import Context, Document, Health, Locator, SecretNotFoundError, Source
from sealpipe_plugins.keyring.client import Keyrings, KeyringSettings, entry


class KeyringSource(Source):
    """The keyring of this session. Never asks for anything."""

    def __init__(self, settings: KeyringSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._keyrings = Keyrings(settings, context.deadline)

    def fetch(self, locator: Locator) -> Document:
        """The password of a service and a user name."""
        service, username = entry(locator)
        found = self._keyrings.password(service, username)
        if found is None:
            raise SecretNotFoundError(
                f"{locator} is not in the keyring", remedy="see what is there; `keyring set SERVICE USERNAME` stores it"
            )
        return Document(found)

    def check(self) -> Health:
        """Which keyring it is, and that it is open."""
        return Health(ok=True, detail=self._keyrings.state())
