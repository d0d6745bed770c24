"""The settings of Azure Key Vault, and the names of vaults and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from pydantic import PositiveFloat

from sealpipe.plugin import Locator, NotConfiguredError, ReferenceValueError, Secret
from sealpipe.plugin.settings import PluginSettings


class KeyVaultSettings(PluginSettings):
    """The vault of references that name none, and the login.

    The login is an application (`tenant_id`, `client_id`) with its `client_secret`, with a token
    from `federated_token_file`, or, with neither, with the CI's OIDC token for `audience`. Or it is
    the machine's `managed_identity`: `system`, or the client id of one that was assigned to it.
    `timeout` is in seconds, for each step.
    """

    url: str | None = None
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    federated_token_file: Path | None = None
    audience: str = "api://AzureADTokenExchange"
    managed_identity: str | None = None
    authority: str = "https://login.microsoftonline.com"
    timeout: PositiveFloat = 30.0

    own_variables: ClassVar[Mapping[str, str]] = {
        "tenant_id": "AZURE_TENANT_ID",
        "client_id": "AZURE_CLIENT_ID",
        "client_secret": "AZURE_CLIENT_SECRET",
        "federated_token_file": "AZURE_FEDERATED_TOKEN_FILE",
        "authority": "AZURE_AUTHORITY_HOST",
    }


class SecretName(NamedTuple):
    """A secret: the vault's address, and its name in it."""

    vault: str
    name: str


_REFERENCE: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9])/)?([0-9A-Za-z-]{1,127})"
)
_VERSION: Final = re.compile(r"[0-9A-Fa-f]{32}")


def parse_secret(locator: Locator, settings: KeyVaultSettings, store: str) -> SecretName:
    """Return the secret of a reference.

    Raises ReferenceValueError, and NotConfiguredError without a vault.
    """
    match = _REFERENCE.fullmatch(locator.body)
    if match is None:
        raise ReferenceValueError(
            f"{locator} is not a valid name of a secret",
            remedy=f"write {locator.name}:VAULT/NAME; a name has at most 127 letters, digits and -",
        )
    if match[1] is not None:
        return SecretName(f"https://{match[1].lower()}.vault.azure.net", match[2])
    if settings.url is None:
        raise NotConfiguredError(
            f"{locator} names no vault, and {store} has none",
            remedy=f"write {locator.name}:VAULT/{match[2]}, or set the setting url",
        )
    return SecretName(settings.url.rstrip("/"), match[2])


def parse_version(locator: Locator) -> str:
    """Return the version of a reference; an empty string if it names none."""
    version = locator.param("version")
    if version is None:
        return ""
    if _VERSION.fullmatch(version) is None:
        raise ReferenceValueError(
            f"{locator}: version= must be 32 hexadecimal digits",
            remedy="leave it out for the newest version",
        )
    return version
