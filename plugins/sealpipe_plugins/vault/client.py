"""The client of Vault and OpenBao: mounts, reads and health (writes: writing.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from hvac.api.secrets_engines import KvV2
from hvac.exceptions import VaultError

from sealpipe.plugin import Context, PluginError, SecretNotFoundError, UnsupportedError
from sealpipe_plugins.vault.adapter import Server, VaultAdapter, as_number, get_member
from sealpipe_plugins.vault.errors import has_words, not_found_error, read_error
from sealpipe_plugins.vault.path import VaultPath
from sealpipe_plugins.vault.session import Session
from sealpipe_plugins.vault.settings import VaultSettings

T = TypeVar("T")


class Mount(NamedTuple):
    """A mounted secrets engine.

    `path` has no trailing slash, `kind` is Vault's type (kv, database).
    """

    path: str
    versioned: bool
    kind: str = "kv"


class Lease(NamedTuple):
    """The lease of dynamic credentials.

    `ends_at` is the end of the lease or of the token, whichever is first.
    """

    ends_at: datetime
    remark: str


class Vault:
    """One server. Looks up each mount once. Thread-safe."""

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        server = Server(settings, context)
        self.host = server.host
        self.session = Session(server, settings, context)
        self._lock = threading.Lock()
        self._mounts: dict[str, list[Mount]] = {}

    def read(self, target: VaultPath) -> tuple[dict[str, Any], Lease | None]:
        """Read the keys of a key-value secret, or the data of another engine."""
        mount = self.find_mount(target)
        if mount.versioned:
            return self._read_versioned(target, mount.path), None
        if target.version is not None:
            raise UnsupportedError(
                f"{target.reference}: the engine at {mount.path}/ has no versions",
                remedy="leave version= out",
            )
        return self._read_any(target)

    def health(self) -> tuple[str, dict[str, Any]]:
        """Return Vault's version and the data of our token. Reads no secret."""
        options = {"standbyok": "true", "perfstandbyok": "true"}
        try:
            state = VaultAdapter(self.session.server, None, "").get(
                "/v1/sys/health", params=options
            )
        except VaultError as error:
            failure = read_error(error, self.host, "")
        else:
            return str(get_member(state, "version")), self.session.look_up_token() or {}
        raise failure

    def describe_state(self) -> str:
        """Describe server and token in one line.

        Raises PluginError if Vault or the token cannot be used.
        """
        version, token = self.health()
        policies = ", ".join(str(each) for each in token.get("policies", ()))
        lifetime = as_number(token.get("ttl"))
        parts = [f"Vault {version} at {self.host}", f"policies {policies}" if policies else ""]
        return ", ".join(
            each
            for each in (*parts, f"the token expires in {lifetime} s" if lifetime else "")
            if each
        )

    def call(
        self,
        target: VaultPath,
        path: str,
        request: Callable[[VaultAdapter], T],
        *,
        capability: str = "read",
        passed_statuses: Collection[int] = (404,),
    ) -> T:
        """Make a call and return its response.

        A refusal becomes an error of the contract, except for the statuses in `passed_statuses`,
        which raise VaultError: 404 means that nothing exists. `capability` is the one that the call
        needs.
        """
        adapter = self.session.adapter(target.namespace)
        try:
            response = request(adapter)
        except VaultError as error:
            if error.response.status in passed_statuses and not has_words(
                error, "namespace not found"
            ):
                raise
            if error.response.status == 403:
                failure = self.session.access_denied(
                    target.reference, path, target.namespace, capability
                )
            else:
                failure = read_error(error, target.reference, target.namespace)
        else:
            return response
        raise failure

    def _read_versioned(self, target: VaultPath, mount: str) -> dict[str, Any]:
        path = target.path.removeprefix(f"{mount}/")
        version = None if target.version is None else int(target.version)

        def request(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).read_secret_version(
                path, version=version, mount_point=mount, raise_on_deleted_version=True
            )

        try:
            response = self.call(target, f"{mount}/data/{path}", request)
        except VaultError as error:
            failure = not_found_error(error, target.reference, target.version, path)
        else:
            return _require_map(get_member(response, "data", "data"), target)
        raise failure

    def _read_any(self, target: VaultPath) -> tuple[dict[str, Any], Lease | None]:
        started = datetime.now(UTC)
        try:
            response = self.call(
                target, target.path, lambda adapter: adapter.get(f"/v1/{quote(target.path)}")
            )
        except VaultError as error:
            failure = not_found_error(error, target.reference, None, "")
        else:
            lease = (
                self._lease(started, as_number(response.get("lease_duration")))
                if response.get("lease_id")
                else None
            )
            return _require_map(get_member(response, "data"), target), lease
        raise failure

    def _lease(self, started: datetime, lifetime: int) -> Lease:
        self.session.has_lease = True
        login = self.session.login_with_end()
        ends_at = [
            started + timedelta(seconds=lifetime),
            *([login.ends_at] if login.ends_at else []),
        ]
        remarks = (
            []
            if login.is_end_known
            else ["the expiry of our token is unknown; the lease ends with it"]
        )
        remarks += (
            [f"our token may be used {login.uses} times; the lease ends with the last use"]
            if login.uses
            else []
        )
        return Lease(min(ends_at), "; ".join(remarks))

    def find_mount(self, target: VaultPath) -> Mount:
        """Return the engine of a path. Raises SecretNotFoundError if there is none."""
        with self._lock:  # one thread looks it up, the others wait for the result
            mounts = self._mounts.setdefault(target.namespace, [])
            for mount in mounts:
                if target.path.startswith(f"{mount.path}/"):
                    return mount
            mount_data = self._look_up_mount(target)
            mounts.append(mount_data)
            return mount_data

    def _look_up_mount(self, target: VaultPath) -> Mount:
        """Look up the engine that a path belongs to, like the `vault kv` command."""
        adapter = self.session.adapter(target.namespace)
        try:
            mount_data = get_member(
                adapter.get(f"/v1/sys/internal/ui/mounts/{quote(target.path)}"), "data"
            )
        except VaultError as error:
            status = error.response.status
            if has_words(error, "preflight"):
                failure: PluginError = _mount_error(target)
            elif status == 403:
                failure = self.session.access_denied(
                    target.reference, target.path, target.namespace
                )
            elif (
                status in (404, 405)
                and target.mount is not None
                and not has_words(error, "namespace not found")
            ):
                return Mount(target.mount, versioned=True)  # unknown version: assume the usual one
            else:
                failure = read_error(error, target.reference, target.namespace)
        else:
            mount_path = str(get_member(mount_data, "path") or "").strip("/")
            if mount_path and target.path.startswith(f"{mount_path}/"):
                return Mount(
                    mount_path,
                    get_member(mount_data, "options", "version") == "2",
                    str(get_member(mount_data, "type") or ""),
                )
            failure = _mount_error(target)
        raise failure


def _mount_error(target: VaultPath) -> SecretNotFoundError:
    location = f"the namespace {target.namespace}" if target.namespace else "Vault"
    return SecretNotFoundError(
        (
            f"{target.reference}: {location} has no secrets engine there, or none that the "
            "token may see"
        ),
        remedy=(
            "check the beginning of the path (`vault secrets list`), the namespace, and the "
            "token's policy"
        ),
    )


def _require_map(data: Any, target: VaultPath) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    raise SecretNotFoundError(
        f"{target.reference}: Vault's response has no data",
        remedy="check the path: it may be a folder",
    )
