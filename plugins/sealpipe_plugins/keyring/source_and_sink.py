"""`keyring:SERVICE/USERNAME`: an entry of the system's keyring, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Sink,
    SinkField,
    Source,
    WriteResult,
    merge_fields,
)
from sealpipe_plugins.keyring.client import KeyringClient, KeyringSettings, parse_entry
from sealpipe_plugins.sink_values import values_by_key

_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "store {user} of {service} in the keyring if it does not exist",
    "replace": "store {user} of {service} in the keyring, replacing what is there",
    "merge": "store {user} of {service} in the keyring, replacing what is there",
}


class KeyringSource(Source):
    """The keyring of this session, without prompting."""

    def __init__(self, settings: KeyringSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._keyrings = KeyringClient(settings, context.deadline)

    def fetch(self, locator: Locator) -> Document:
        """Fetch the password of a service and a user name."""
        service, username = parse_entry(locator)
        stored_value = self._keyrings.read(service, username)
        if stored_value is None:
            raise SecretNotFoundError(
                f"{locator} is not in the keyring",
                remedy="check both names; `keyring set SERVICE USERNAME` stores it",
            )
        return Document(stored_value)

    def check(self) -> Health:
        """Check that the keyring is unlocked."""
        return Health(ok=True, detail=self._keyrings.describe())


class KeyringSink(Sink):
    """The keyring of this session, without prompting.

    It stores no marker: equal content counts as stored.
    """

    def __init__(self, settings: KeyringSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._keyrings = KeyringClient(settings, context.deadline)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        service, user = parse_entry(locator)
        return _DESCRIPTIONS[mode].format(service=service, user=user)

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        """Store the value and read it back. The marker is not stored."""
        service, user = parse_entry(locator)
        if len(fields) != 1:
            raise ReferenceValueError(
                f"{locator} holds one value", remedy="name one entry for each value"
            )
        (wanted,) = values_by_key(fields, locator).values()
        if merge_fields(self._read(service, user), {"": wanted}, mode=mode, marked=False) is None:
            return WriteResult(locator, already=True)
        self._keyrings.store(service, user, wanted)
        if self._read(service, user) != {"": wanted}:
            raise PluginError(
                f"{locator}: the value read back from the keyring is not the one that was stored",
                remedy="check for a concurrent write, or a size limit of the keyring",
            )
        return WriteResult(locator)

    def check(self) -> Health:
        """Check that the keyring is unlocked and encrypted."""
        return Health(ok=True, detail=self._keyrings.describe_writable())

    def _read(self, service: str, user: str) -> Mapping[str, bytes] | None:
        found = self._keyrings.read(service, user)
        if found is None:
            return None
        return {"": found if isinstance(found, bytes) else found.encode("utf-8", "surrogatepass")}
