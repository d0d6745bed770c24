"""Sockets for plugins that speak a protocol themselves: our certificates, the environment's proxies."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import SplitResult, unquote, urlsplit

from sealpipe.errors import SettingError

_PORTS = {"https": 443, "http": 80}


class ProxyError(OSError):
    """The proxy did not let us through; the text is the status that it answered."""


def connected(url: str, context: Callable[[], ssl.SSLContext], proxy: str | None, timeout: float) -> socket.socket:
    """A socket to an address's host, with TLS where the address has https. `timeout` is in seconds, for each step.

    `context` is asked for only where TLS is spoken. Raises OSError, and SettingError for a proxy that is spoken to
    over TLS itself.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    plain = _direct(host, port, timeout) if proxy is None else _tunnel(urlsplit(proxy), host, port, timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context().wrap_socket(plain, server_hostname=host) if parts.scheme == "https" else plain
    except BaseException:
        plain.close()
        raise


def _direct(host: str, port: int, timeout: float) -> socket.socket:
    return socket.create_connection((host, port), timeout)


def _tunnel(way: SplitResult, host: str, port: int, timeout: float) -> socket.socket:
    if way.scheme != "http" or way.hostname is None:
        raise SettingError(
            "the proxy is spoken to over TLS itself, and the way to this backend cannot use it",
            remedy="name it as http://... in HTTPS_PROXY, or take the backend's host into NO_PROXY",
        )
    line = HTTPConnection(way.hostname, way.port or 80, timeout=timeout)
    line.set_tunnel(host, port, headers=_login(way))
    try:
        line.connect()
    except OSError as error:
        line.close()
        status = str(error).partition("Tunnel connection failed: ")[2][:3]
        if status:
            raise ProxyError(status) from None
        raise
    taken, line.sock = line.sock, None
    return taken


def _login(way: SplitResult) -> dict[str, str]:
    if way.username is None:
        return {}
    pair = f"{unquote(way.username)}:{unquote(way.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
