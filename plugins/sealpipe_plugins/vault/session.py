"""The session with one Vault: login, token and its revocation."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hvac.exceptions import VaultError

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
)
from sealpipe_plugins.vault import login
from sealpipe_plugins.vault.adapter import Server, VaultAdapter, as_number, copy_error, get_member
from sealpipe_plugins.vault.errors import has_words, login_error, read_error
from sealpipe_plugins.vault.login import Login
from sealpipe_plugins.vault.settings import VaultSettings

REVOKE_TIMEOUT: Final = 3.0
"""Maximum seconds for revoking our token at the end."""

VALID_FOR: Final = 5.0
"""Seconds for which a token counts as valid after a check, so that 200 denials cause one check."""


class Session:
    """Logs in once, at the first call: a login for each of 200 references could lock the account.

    Thread-safe.

    `has_lease` is set after a read of dynamic credentials. They expire with the token, so it is
    then not revoked.
    """

    def __init__(self, server: Server, settings: VaultSettings, context: Context) -> None:
        self.server = server
        self.namespace = settings.namespace.strip("/")
        self.has_lease = False
        self._settings = settings
        self._context = context
        self._lock = threading.RLock()
        self._login: Login | None = None
        self._login_error: PluginError | None = None
        self._valid_until = 0.0

    def adapter(self, namespace: str) -> VaultAdapter:
        """Return hvac's adapter with our token.

        Raises NotConfiguredError, BackendAuthError, UnavailableError.
        """
        return VaultAdapter(self.server, self.login().token, namespace)

    def login(self) -> Login:
        """Return our token; log in if necessary."""
        with self._lock:
            if self._login_error is not None:
                raise copy_error(self._login_error)
            if self._login is None or _has_ended(self._login.ends_at):
                try:
                    self._login = self._log_in()
                except (BackendAuthError, NotConfiguredError) as error:
                    self._login_error = error
                    raise
            return self._login

    def login_with_end(self) -> Login:
        """Return our token with its expiry, which is looked up for a configured token."""
        with self._lock:
            login = self.login()
            if not login.is_end_known:
                started, response = datetime.now(UTC), self.look_up_token()
                lifetime = as_number(get_member(response, "ttl"))
                ends_at = started + timedelta(seconds=lifetime) if lifetime else None
                uses = as_number(get_member(response, "num_uses"))
                login = self._login = login._replace(
                    ends_at=ends_at, uses=uses, is_end_known=response is not None
                )
            return login

    def look_up_token(self) -> dict[str, Any] | None:
        """Look up the token's data; None if the token may not.

        Raises BackendAuthError if it is invalid.
        """
        try:
            response = self.adapter(self.namespace).get("/v1/auth/token/lookup-self")
        except VaultError as error:
            if error.response.status != 403:
                failure = read_error(error, f"the token of {self._context.store}", self.namespace)
            elif self._is_token_valid():
                return None
            else:
                failure = self._invalid_token()
        else:
            data = get_member(response, "data")
            return data if isinstance(data, dict) else None
        raise failure

    def access_denied(
        self, reference: str, path: str, namespace: str, capability: str = "read"
    ) -> PluginError:
        """Return the error for a denied path.

        An invalid token, or a policy without `capability`.
        """
        with self._lock:
            if not self._is_token_valid():
                return self._invalid_token()
        location = f" in the namespace {namespace}" if namespace else ""
        # A write needs all three: read, create (first version) and update (later versions).
        needs = '["read"]' if capability == "read" else '["create", "read", "update"]'
        return AccessDeniedError(
            f"{reference}: the token has no permission to {capability} {path}{location}",
            remedy=f'its policy needs: path "{path}" {{ capabilities = {needs} }}',
        )

    def close(self) -> None:
        """Revoke our token, unless a lease depends on it."""
        with self._lock:
            login, self._login = self._login, None
        if (
            login is not None
            and login.is_ours
            and not self.has_lease
            and not _has_ended(login.ends_at)
        ):
            adapter = VaultAdapter(self.server, login.token, self.namespace, REVOKE_TIMEOUT)
            with suppress(PluginError, VaultError):
                adapter.post("/v1/auth/token/revoke-self")

    def _is_token_valid(self) -> bool:
        """Return whether the token is valid, using a call that every valid token may make.

        True if in doubt.
        """
        if time.monotonic() < self._valid_until:
            return True
        try:
            self.adapter(self.namespace).get("/v1/sys/internal/ui/mounts/sealpipe")
        except VaultError as error:
            if error.response.status == 403 and not has_words(error, "preflight"):
                return False
        except PluginError:
            return True  # unknown: report the original error
        self._valid_until = time.monotonic() + VALID_FOR
        return True

    def _invalid_token(self) -> BackendAuthError:
        return BackendAuthError(
            f"Vault does not know the token of {self._context.store}: it has expired, was "
            "revoked, or is for "
            "another Vault",
            remedy="log in again (vault login), or set role_id, or a role for the CI's own token",
        )

    def _log_in(self) -> Login:
        method = login.choose_method(self._settings, self._context)
        anonymous = VaultAdapter(self.server, None, self.namespace)
        try:
            new_login = login.log_in(method, self._settings, self._context, anonymous)
        except VaultError as error:
            path = login.mount_path(self._settings, method)
            failure = login_error(error, self._context.store, method, path, self.namespace)
        else:
            return new_login
        raise failure


def _has_ended(end: datetime | None) -> bool:
    return end is not None and end <= datetime.now(UTC)
