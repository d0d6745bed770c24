"""The login to Azure.

Access tokens from the configured application or identity, by Microsoft's own library (MSAL).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msal
from msal.exceptions import MsalError

from sealpipe.plugin import Context, NotConfiguredError, Secret, read_file
from sealpipe_plugins.azure_key_vault.errors import login_error
from sealpipe_plugins.azure_key_vault.settings import KeyVaultSettings
from sealpipe_plugins.azure_key_vault.transport import LoginTransport, MachineTransport

_FILE_LIMIT: Final = 64 * 1024
"""Maximum size in bytes of a file with a token."""

# It logs responses that it cannot read, as errors too.
logging.getLogger("msal").setLevel(logging.CRITICAL)


class Login:
    """The login of one store.

    Thread-safe; logs in at the first call. The library keeps and renews the tokens.
    """

    def __init__(self, settings: KeyVaultSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._lock = threading.Lock()
        self._acquire: Callable[[str], Any] | None = None
        self._transport: LoginTransport | None = None

    def token(self, resource: str) -> Secret:
        """Return a token for a resource. Raises PluginError."""
        with self._lock:
            if self._transport is None:
                self._transport = _make_transport(self._settings, self._context)
            self._transport.refusal = None
            result: Any = None
            try:
                if self._acquire is None:
                    self._acquire = _make_application(
                        self._settings, self._context, self._transport
                    )
                result = self._acquire(resource)
            except (
                ValueError,
                LookupError,
                TypeError,
                AttributeError,
                ArithmeticError,
                RuntimeError,
                MsalError,
            ):
                pass  # their texts may quote a response
            token = result.get("access_token") if isinstance(result, dict) else None
            if isinstance(token, str):
                return Secret(token)
            self._acquire = None
            codes = result.get("error_codes") if isinstance(result, dict) else None
            error = login_error(self._transport.refusal, codes, self._context.store)
        raise error

    def forget(self) -> None:
        """Forget the tokens: the next call gets a new one."""
        with self._lock:
            self._acquire = None

    def describe(self) -> str:
        """Return whose login it is."""
        if uses_machine(self._settings):
            return (
                "managed identity "
                f"{self._settings.managed_identity or self._settings.client_id or 'system'}"
            )
        return f"application {self._settings.client_id}"


def uses_machine(settings: KeyVaultSettings) -> bool:
    """Return whether the login is the machine's managed identity."""
    return settings.managed_identity is not None or settings.tenant_id is None


def _make_transport(settings: KeyVaultSettings, context: Context) -> LoginTransport:
    if (
        context.named
        and settings.managed_identity is None
        and not (settings.tenant_id and settings.client_id)
    ):
        raise NotConfiguredError(
            (
                f"the store {context.store} has no Azure login: AZURE_* variables apply to the "
                "default store only"
            ),
            remedy="set its tenant_id and client_id, with client_secret or for the CI's own token, "
            "or its managed_identity",
        )
    if (
        settings.tenant_id is not None
        and settings.client_id is None
        and settings.managed_identity is None
    ):
        raise NotConfiguredError(
            f"{context.store} has a tenant_id but no client_id",
            remedy="set client_id (AZURE_CLIENT_ID) as well",
        )
    kind = MachineTransport if uses_machine(settings) else LoginTransport
    return kind(context, settings.timeout)


def _make_application(
    settings: KeyVaultSettings, context: Context, transport: LoginTransport
) -> Callable[[str], Any]:
    """Return what gets a token for a resource. Raises what the library raises."""
    if uses_machine(settings):
        chosen = settings.managed_identity or settings.client_id or "system"
        identity = (
            msal.SystemAssignedManagedIdentity()
            if chosen == "system"
            else msal.UserAssignedManagedIdentity(client_id=chosen)
        )
        machine = msal.ManagedIdentityClient(identity, http_client=transport)
        return lambda resource: machine.acquire_token_for_client(resource=resource)
    credential: Any = {"client_assertion": lambda: _read_assertion(settings, context)}
    if settings.client_secret is not None:
        credential = settings.client_secret.reveal()
    host = settings.authority if "://" in settings.authority else f"https://{settings.authority}"
    if urlsplit(host).scheme != "https":
        raise NotConfiguredError(
            f"the setting authority of {context.store} must be an https address",
            remedy="write https://HOST",
        )
    application = msal.ConfidentialClientApplication(
        settings.client_id,
        client_credential=credential,
        authority=f"{host.rstrip('/')}/{settings.tenant_id}",
        http_client=transport,
        # a variable, for named stores too
        azure_region=msal.ConfidentialClientApplication.DISABLE_MSAL_FORCE_REGION,
        # it would ask login.microsoftonline.com about every other authority
        instance_discovery=False,
    )
    return lambda resource: application.acquire_token_for_client(scopes=[f"{resource}/.default"])


def _read_assertion(settings: KeyVaultSettings, context: Context) -> str:
    """Return the token that proves who we are. Read again for each login, because it expires."""
    if settings.federated_token_file is None:
        return context.oidc_token(settings.audience).reveal()
    try:
        return read_file(settings.federated_token_file.expanduser(), _FILE_LIMIT).decode().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
    raise NotConfiguredError(
        f"the federated_token_file of {context.store} cannot be read: {reason}",
        remedy="check the path (AZURE_FEDERATED_TOKEN_FILE) and its permissions",
    )
