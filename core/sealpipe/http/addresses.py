"""Host names to connections, within the caller's time (the system's look-up has no timeout), and which are refused."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore

from sealpipe.errors import NotConfiguredError, SettingError
from sealpipe.loopback import is_cleartext, is_loopback

Addresses = list[tuple[Any, ...]]


def resolve_host(host: str, port: int, timeout: float | None) -> Addresses:
    """Look up a name, as `socket.getaddrinfo` does. Raises OSError, TimeoutError after `timeout` seconds."""
    if timeout is None or host == "localhost" or ":" in host or host.replace(".", "").isdigit():
        return _look_up(host, port)  # answered without the network
    results: list[Addresses | BaseException] = []

    def resolve() -> None:
        try:
            results.append(_look_up(host, port))
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that asked
            results.append(error)

    # A thread of its own, abandoned on timeout: nothing ends a look-up that hangs.
    thread = threading.Thread(target=resolve, name="sealpipe-name", daemon=True)
    thread.start()
    thread.join(timeout)
    if not results:
        raise TimeoutError("the name could not be looked up in time")
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def connect_host(host: str, port: int, get_remaining: Callable[[], float]) -> socket.socket:
    """Connect over TCP to the first address that accepts. `get_remaining` returns the seconds left for the next step.

    Raises OSError, and TimeoutError where `get_remaining` does.
    """
    first_error = OSError("the name has no address")
    for family, kind, protocol, _, address in resolve_host(host, port, get_remaining()):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(get_remaining())
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            first_error = error
        except BaseException:
            connection.close()
            raise
    raise first_error


def _look_up(host: str, port: int) -> Addresses:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def refuse_cleartext(scheme: str, host: str) -> None:
    """Refuse a plugin's connection over which others could read what it sends: NotConfiguredError.

    The last check, before the first byte; backends check before, and name the setting.
    """
    if is_cleartext(scheme, host):
        raise NotConfiguredError(
            f"the address {scheme}://{host} would send secrets to another machine unencrypted: nothing was sent",
            remedy="use https://; http:// is only for loopback",
        )


def describe_not_loopback(host: str, address: str) -> str:
    """Say why there is no connection where http:// was allowed for this machine's name."""
    return f"the name {host} resolves to another machine ({address}), and http:// is for this machine only"


def find_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for an address; None for loopback. Raises SettingError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Dear to import, and most environments name no proxy.
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    if proxy_bypass_environment(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_valid_proxy(proxy):
        raise SettingError("the environment's proxy is not an http:// or https:// address", remedy="check HTTPS_PROXY")
    return proxy


def make_pool_proxy(proxy: str | None, context: ssl.SSLContext | None) -> httpcore.Proxy | None:
    """Return a proxy as connection pools take it: its login apart from its address. `context` is for https:// proxies.

    Without one httpcore would make its own, which obeys SSLKEYLOGFILE and does not know the CA file.
    """
    if proxy is None:
        return None
    parts = urlsplit(proxy)
    url = httpcore.URL(scheme=parts.scheme, host=_encode_host(parts.hostname or ""), port=parts.port, target="/")
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(
        url,
        auth=None if login is None else (login[0].encode(), login[1].encode()),
        ssl_context=context if parts.scheme == "https" else None,
    )


def _is_valid_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        normalized = (
            bool(_encode_host(parts.hostname or "")) and parts.port != 0
        )  # a wrong port raises only when it is asked for
    except ValueError:
        return False
    return normalized and parts.scheme in ("http", "https") and address.isprintable() and " " not in address


def _encode_host(host: str) -> str:
    """A host's name as it is asked for. Raises ValueError."""
    return host if host.isascii() else host.encode("idna").decode("ascii")
