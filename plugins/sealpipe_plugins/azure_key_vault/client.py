"""The client of Azure Key Vault, by its public REST API (version 7.4).

Any number of vaults with one login.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import Context, Health, Locator, NotConfiguredError, PluginError, Secret
from sealpipe_plugins.azure_key_vault.challenge import parse_challenge, require_own_resource
from sealpipe_plugins.azure_key_vault.errors import refuse
from sealpipe_plugins.azure_key_vault.login import Login, uses_machine
from sealpipe_plugins.azure_key_vault.settings import KeyVaultSettings, SecretName
from sealpipe_plugins.cloud import describe_login, make_endpoint, send_logged_in
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import require_answer
from sealpipe_plugins.http_reply import Reply

SYSTEM: Final = "Azure Key Vault"
_API: Final = "api-version=7.4"
_LIST: Final = f"/secrets?{_API}&maxresults=1"
_DEFAULT_RESOURCE: Final = "https://vault.azure.net"

_ID: Final = re.compile(r"https?://[^/]+/secrets/[^/]+/([0-9a-fA-F]{32})")


class Bundle(NamedTuple):
    """A version of a secret, with what a new version keeps of it."""

    version: str
    value: str
    tags: Mapping[str, str]
    content_type: str | None

    def __repr__(self) -> str:
        return f"Bundle({self.version!r}, ...)"


class KeyVault:
    """Vaults with one login. Thread-safe. Each vault is asked once which token it wants."""

    def __init__(self, settings: KeyVaultSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._login = Login(settings, context)
        self._lock = threading.Lock()
        self._resources: dict[str, str] = {}

    def call(
        self,
        method: str,
        secret: SecretName,
        version: str = "",
        body: Mapping[str, Any] | None = None,
        *,
        folder: str = "secrets",
        writes: bool = False,
    ) -> Reply:
        """Make one call about a secret, as `send_logged_in` does."""
        path = f"/{folder}/{secret.name}" + (f"/{version}" if version else "")
        return self._send(method, secret.vault, f"{path}?{_API}", body, writes=writes)

    def read(self, secret: SecretName, version: str, locator: Locator) -> Bundle | None:
        """Read a version; the newest if it is empty. Return None if there is none."""
        reply = self.call("GET", secret, version)
        return None if reply.status == 404 else parse_bundle(refuse(reply, locator, "get"), locator)

    def is_deleted(self, secret: SecretName) -> bool:
        """Return whether the name belongs to a deleted secret that can be recovered, as far as the
        login may know.
        """
        return self.call("GET", secret, folder="deletedsecrets").status == 200

    def check(self) -> Health:
        """Log in, and list one secret of the vault. Reads none."""
        whose = self._login.describe()
        if self._settings.url is None:
            self._login.token(_DEFAULT_RESOURCE)
            return Health(ok=True, detail=f"logged in as {whose}; no vault is set")
        reply = self._send("GET", self._settings.url.rstrip("/"), _LIST, None, writes=False)
        return describe_login(reply, f"logged in as {whose}")

    def _send(
        self, method: str, vault: str, path: str, body: Mapping[str, Any] | None, *, writes: bool
    ) -> Reply:
        endpoint = make_endpoint(self._context, SYSTEM, vault, self._settings.timeout)
        token = self._login.token(self._find_resource(endpoint, vault))
        headers = {"authorization": Secret(f"Bearer {token.reveal()}")}
        return send_logged_in(
            endpoint, headers, self._login.forget, method, path, body, writes=writes
        )

    def _find_resource(self, endpoint: Endpoint, vault: str) -> str:
        """Return what a token for this vault names. A request without a token asks for it, once."""
        with self._lock:
            if vault not in self._resources:
                reply = require_answer(endpoint.request("GET", _LIST))
                challenge = parse_challenge(reply.headers.get("www-authenticate", ""))
                if reply.status != 401 or challenge is None:
                    raise NotConfiguredError(
                        f"the server at {endpoint.host} is not Azure Key Vault ({reply.status})",
                        remedy="check the vault's name, or the setting url",
                    )
                tenant = None if uses_machine(self._settings) else self._settings.tenant_id
                self._resources[vault] = require_own_resource(challenge, vault, tenant)
            return self._resources[vault]


def parse_bundle(reply: Reply, locator: Locator) -> Bundle:
    """Return the version in a response. Raises PluginError if it is not Key Vault's."""
    match = _ID.fullmatch(str(reply.member("id")))
    value, tags, content_type = (reply.member(name) for name in ("value", "tags", "contentType"))
    if match is None or not isinstance(value, str) or not isinstance(tags, dict | None):
        raise PluginError(
            f"{locator}: the response is not Azure Key Vault's", remedy="check the setting url"
        )
    own_tags = {str(name): str(tag) for name, tag in (tags or {}).items()}
    return Bundle(
        match[1], value, own_tags, content_type if isinstance(content_type, str) else None
    )
