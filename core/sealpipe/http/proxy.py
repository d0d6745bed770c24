"""The proxy that the environment names for an address. Loopback never uses one."""

from __future__ import annotations

import os
import ssl
from urllib.parse import unquote, urlsplit

import httpcore

from sealpipe.errors import SettingError
from sealpipe.loopback import is_loopback


def proxy_for(url: str) -> str | None:
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
    if not _is_proxy(proxy):
        raise SettingError("the proxy of the environment is not an http(s) address", remedy="check HTTPS_PROXY")
    return proxy


def pool_proxy(proxy: str | None, context: ssl.SSLContext | None) -> httpcore.Proxy | None:
    """Return a proxy as connection pools take it: its login apart from its address. `context` is for https:// proxies.

    Without one httpcore would make its own, which obeys SSLKEYLOGFILE and does not know the CA file.
    """
    if proxy is None:
        return None
    parts = urlsplit(proxy)
    url = httpcore.URL(scheme=parts.scheme, host=_ascii(parts.hostname or ""), port=parts.port, target="/")
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(
        url,
        auth=None if login is None else (login[0].encode(), login[1].encode()),
        ssl_context=context if parts.scheme == "https" else None,
    )


def _is_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        whole = bool(_ascii(parts.hostname or "")) and parts.port != 0  # a wrong port raises only when it is asked for
    except ValueError:
        return False
    return whole and parts.scheme in ("http", "https") and address.isprintable() and " " not in address


def _ascii(host: str) -> str:
    """A host's name as it is asked for. Raises ValueError."""
    return host if host.isascii() else host.encode("idna").decode("ascii")
