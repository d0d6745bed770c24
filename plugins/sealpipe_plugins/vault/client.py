"""One Vault, or OpenBao: which engine is mounted where, and reads of them (writes: writing.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from hvac.api.secrets_engines import KvV2
from hvac.exceptions import VaultError

from sealpipe.plugin import Context, NotConfiguredError, PluginError, SecretNotFoundError, UnsupportedError, in_clear
from sealpipe_plugins.vault.adapter import VaultAdapter, as_number, get_member
from sealpipe_plugins.vault.connections import ConnectionPool
from sealpipe_plugins.vault.errors import has_words, not_found_error, read_error
from sealpipe_plugins.vault.path import Place
from sealpipe_plugins.vault.session import Session
from sealpipe_plugins.vault.settings import VaultSettings

T = TypeVar("T")


class Mount(NamedTuple):
    """A secrets engine, and where it stands (without a slash at the end). `kind` is Vault's own word: kv, database."""

    path: str
    versioned: bool
    kind: str = "kv"


class Lease(NamedTuple):
    """What comes with a read of an engine that lends. `ends`: the lease or the token, whichever is first."""

    ends: datetime
    remark: str


class Vault:
    """Looks up each mount once. Safe to use from several threads."""

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        self.host, prefix = _address(settings.addr, context)
        connect = partial(
            context.network.connect,
            settings.addr,
            ca_file=settings.ca_file and settings.ca_file.expanduser(),
            timeout=settings.timeout,
        )
        self.session = Session(ConnectionPool(connect, self.host, prefix), settings, context)
        self._lock = threading.Lock()
        self._mounts: dict[str, list[Mount]] = {}

    def read(self, place: Place) -> tuple[dict[str, Any], Lease | None]:
        """What lives there: the keys of a key-value engine, or all that another engine answers."""
        mount = self.mount(place)
        if mount.versioned:
            return self._read_versioned(place, mount.path), None
        if place.version is not None:
            raise UnsupportedError(
                f"{place.where}: the engine at {mount.path}/ keeps no versions", remedy="leave version= out"
            )
        return self._read_any(place)

    def health(self) -> tuple[str, dict[str, Any]]:
        """Vault's version, and what it knows of our token. Reads no secret."""
        options = {"standbyok": "true", "perfstandbyok": "true"}
        try:
            state = VaultAdapter(self.session.pool, None, "").get("/v1/sys/health", params=options)
        except VaultError as error:
            failure = read_error(error, self.host, "")
        else:
            return str(get_member(state, "version")), self.session.look_up_token() or {}
        raise failure

    def describe_state(self) -> str:
        """Whether Vault answers and takes our token, and what this may do; for people."""
        version, token = self.health()
        policies = ", ".join(str(each) for each in token.get("policies", ()))
        lives = as_number(token.get("ttl"))
        told = [f"Vault {version} at {self.host}", f"policies {policies}" if policies else ""]
        return ", ".join(each for each in (*told, f"the token lives for {lives} s" if lives else "") if each)

    def call(
        self,
        place: Place,
        path: str,
        ask: Callable[[VaultAdapter], T],
        *,
        right: str = "read",
        through: Collection[int] = (404,),
    ) -> T:
        """What a call answers; its refusal as an error of the contract, but for the statuses that go `through`.

        404 is what finds nothing. `right` is the capability that the call needs.
        """
        adapter = self.session.adapter(place.namespace)
        try:
            answer = ask(adapter)
        except VaultError as error:
            if error.answer.status in through and not has_words(error, "namespace not found"):
                raise
            if error.answer.status == 403:
                failure = self.session.access_denied(place.where, path, place.namespace, right)
            else:
                failure = read_error(error, place.where, place.namespace)
        else:
            return answer
        raise failure

    def _read_versioned(self, place: Place, mount: str) -> dict[str, Any]:
        path = place.path.removeprefix(f"{mount}/")
        version = None if place.version is None else int(place.version)

        def ask(adapter: VaultAdapter) -> Any:
            return KvV2(adapter).read_secret_version(
                path, version=version, mount_point=mount, raise_on_deleted_version=True
            )

        try:
            answer = self.call(place, f"{mount}/data/{path}", ask)
        except VaultError as error:
            failure = not_found_error(error, place.where, place.version, path)
        else:
            return _map(get_member(answer, "data", "data"), place)
        raise failure

    def _read_any(self, place: Place) -> tuple[dict[str, Any], Lease | None]:
        begun = datetime.now(UTC)
        try:
            answer = self.call(place, place.path, lambda adapter: adapter.get(f"/v1/{quote(place.path)}"))
        except VaultError as error:
            failure = not_found_error(error, place.where, None, "")
        else:
            lease = self._lease(begun, as_number(answer.get("lease_duration"))) if answer.get("lease_id") else None
            return _map(get_member(answer, "data"), place), lease
        raise failure

    def _lease(self, begun: datetime, lives: int) -> Lease:
        self.session.has_lease = True
        login = self.session.login_with_end()
        ends = [begun + timedelta(seconds=lives), *([login.ends] if login.ends else [])]
        doubts = [] if login.known else ["the end of our token is not known, and its lease ends with it"]
        doubts += [f"our token may be used {login.uses} times, and its lease ends with the last"] if login.uses else []
        return Lease(min(ends), "; ".join(doubts))

    def mount(self, place: Place) -> Mount:
        """The engine that a path belongs to. Raises SecretNotFoundError where there is none."""
        with self._lock:  # the first one looks, and all that wait find it
            known = self._mounts.setdefault(place.namespace, [])
            for mount in known:
                if place.path.startswith(f"{mount.path}/"):
                    return mount
            found = self._look_up(place)
            known.append(found)
            return found

    def _look_up(self, place: Place) -> Mount:
        """The engine that a path belongs to, as the `vault kv` command finds it."""
        adapter = self.session.adapter(place.namespace)
        try:
            found = get_member(adapter.get(f"/v1/sys/internal/ui/mounts/{quote(place.path)}"), "data")
        except VaultError as error:
            status = error.answer.status
            if has_words(error, "preflight"):
                failure: PluginError = _mount_error(place)
            elif status == 403:
                failure = self.session.access_denied(place.where, place.path, place.namespace)
            elif status in (404, 405) and place.mount is not None and not has_words(error, "namespace not found"):
                return Mount(place.mount, versioned=True)  # this Vault does not tell; most are
            else:
                failure = read_error(error, place.where, place.namespace)
        else:
            stands = str(get_member(found, "path") or "").strip("/")
            if stands and place.path.startswith(f"{stands}/"):
                return Mount(
                    stands, get_member(found, "options", "version") == "2", str(get_member(found, "type") or "")
                )
            failure = _mount_error(place)
        raise failure


def _mount_error(place: Place) -> SecretNotFoundError:
    inside = f"the namespace {place.namespace}" if place.namespace else "Vault"
    return SecretNotFoundError(
        f"{place.where}: {inside} has no secrets engine there, or none that the token may know of",
        remedy="check the beginning of the path (`vault secrets list`), the namespace, and the token's policy",
    )


def _map(data: Any, place: Place) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    raise SecretNotFoundError(
        f"{place.where}: Vault answers without any data", remedy="check the path: it may be a folder"
    )


def _address(addr: str, context: Context) -> tuple[str, str]:
    """Host (a port with it) and path of the address. NotConfiguredError where a token would travel in clear."""
    where = f"the setting addr of {context.store}"
    try:
        parts = urlsplit(addr)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query or parts.fragment:
        raise NotConfiguredError(f"{where} is no address", remedy="it looks like https://vault.example.com:8200")
    if in_clear(parts.scheme, host):
        raise NotConfiguredError(
            f"{where} has http:// to another machine: token and secrets would travel in clear",
            remedy="let it begin with https://; http:// is for this machine itself only",
        )
    return (host if port is None else f"{host}:{port}"), parts.path.rstrip("/")
