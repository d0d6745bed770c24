"""Our way into one Vault: one login, what is known of its token, and its end."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hvac.exceptions import VaultError

from sealpipe.plugin import AccessDeniedError, BackendAuthError, Context, NotConfiguredError, PluginError
from sealpipe_plugins.vault import login
from sealpipe_plugins.vault.adapter import VaultAdapter, member, number
from sealpipe_plugins.vault.connections import ConnectionPool, copy_error
from sealpipe_plugins.vault.errors import has, login_refused, refused
from sealpipe_plugins.vault.login import Login
from sealpipe_plugins.vault.settings import VaultSettings

REVOKE_TIMEOUT: Final = 3.0
"""Seconds that revoking our token at the end may take."""

VALID_FOR: Final = 5.0
"""Seconds for which a token that Vault knew is taken to be known: 200 refusals are not 200 questions."""


class Session:
    """Logs in when it is first asked, and once: 200 references must not lock an account. For several threads.

    `leased` is set by who reads what hangs on the token: then it is not revoked.
    """

    def __init__(self, pool: ConnectionPool, settings: VaultSettings, context: Context) -> None:
        self.pool = pool
        self.namespace = settings.namespace.strip("/")
        self.leased = False
        self._settings = settings
        self._context = context
        self._lock = threading.RLock()
        self._login: Login | None = None
        self._refused: PluginError | None = None
        self._trusted = 0.0

    def adapter(self, namespace: str) -> VaultAdapter:
        """hvac's way in, with our token. Raises NotConfiguredError, BackendAuthError, UnavailableError."""
        return VaultAdapter(self.pool, self.login().token, namespace)

    def login(self) -> Login:
        """Our token."""
        with self._lock:
            if self._refused is not None:
                raise copy_error(self._refused)
            if self._login is None or _is_over(self._login.ends):
                try:
                    self._login = self._log_in()
                except (BackendAuthError, NotConfiguredError) as error:
                    self._refused = error
                    raise
            return self._login

    def known(self) -> Login:
        """Our token, with its end; that is looked up for a token that was given to us."""
        with self._lock:
            login = self.login()
            if not login.known:
                begun, found = datetime.now(UTC), self.look()
                lives = number(member(found, "ttl"))
                ends = begun + timedelta(seconds=lives) if lives else None
                uses = number(member(found, "num_uses"))
                login = self._login = login._replace(ends=ends, uses=uses, known=found is not None)
            return login

    def look(self) -> dict[str, Any] | None:
        """What Vault knows of the token; None where the token may not ask. BackendAuthError where it is none."""
        try:
            found = self.adapter(self.namespace).get("/v1/auth/token/lookup-self")
        except VaultError as error:
            if error.answer.status != 403:
                failure = refused(error, f"the token of {self._context.store}", self.namespace)
            elif self._is_one():
                return None
            else:
                failure = self._is_none()
        else:
            data = member(found, "data")
            return data if isinstance(data, dict) else None
        raise failure

    def denied(self, where: str, path: str, namespace: str, right: str = "read") -> PluginError:
        """Why a path was refused: a token that is none is another matter than a policy, which lacks `right`."""
        with self._lock:
            if not self._is_one():
                return self._is_none()
        inside = f" in the namespace {namespace}" if namespace else ""
        # Whoever writes needs all three: to look first, for the first version, and for those after it.
        needs = '["read"]' if right == "read" else '["create", "read", "update"]'
        return AccessDeniedError(
            f"{where}: the token has no right to {right} {path}{inside}",
            remedy=f'its policy needs: path "{path}" {{ capabilities = {needs} }}',
        )

    def close(self) -> None:
        """Revoke a token that we logged in for, unless a lease hangs on it; and hang up."""
        with self._lock:
            login, self._login = self._login, None
        if login is not None and login.ours and not self.leased and not _is_over(login.ends):
            self.pool.set_timeout(REVOKE_TIMEOUT)
            with suppress(PluginError, VaultError):
                VaultAdapter(self.pool, login.token, self.namespace).post("/v1/auth/token/revoke-self")
        self.pool.close()

    def _is_one(self) -> bool:
        """Whether Vault knows the token: any that it knows may ask this, whatever its policies. True in doubt."""
        if time.monotonic() < self._trusted:
            return True
        try:
            self.adapter(self.namespace).get("/v1/sys/internal/ui/mounts/sealpipe")
        except VaultError as error:
            if error.answer.status == 403 and not has(error, "preflight"):
                return False
        except PluginError:
            return True  # then what was refused is told as it was seen
        self._trusted = time.monotonic() + VALID_FOR
        return True

    def _is_none(self) -> BackendAuthError:
        return BackendAuthError(
            f"Vault does not know the token of {self._context.store}: it has expired, was revoked, or is another "
            "Vault's",
            remedy="log in anew (vault login), or set role_id, or a role for the CI's own token",
        )

    def _log_in(self) -> Login:
        method = login.method(self._settings, self._context)
        without = VaultAdapter(self.pool, None, self.namespace)
        try:
            logged_in = login.log_in(method, self._settings, self._context, without)
        except VaultError as error:
            path = login.path(self._settings, method)
            failure = login_refused(error, self._context.store, method, path, self.namespace)
        else:
            return logged_in
        raise failure


def _is_over(end: datetime | None) -> bool:
    return end is not None and end <= datetime.now(UTC)
