"""Sockets for plugins that speak a protocol themselves: our certificates, the environment's proxies, one deadline."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from sealpipe.errors import SettingError
from sealpipe.http.addresses import connect_host, refuse_cleartext
from sealpipe.http.deadline import EXCHANGE
from sealpipe.http.sockets import BoundedSocket, BoundedTls, bound_socket, wrap_tls
from sealpipe.secret_scan import CustodyGate

_PORTS: Final = {"https": 443, "http": 80}
_MOST: Final = 64 * 1024
"""Bytes of a proxy's answer."""


class ProxyError(OSError):
    """The proxy did not let us through; the text is the status that it answered."""


def connect(
    url: str,
    context: Callable[[], ssl.SSLContext],
    proxy: str | None,
    timeout: float,
    deadline: float,
    gate: CustodyGate | None = None,
) -> socket.socket:
    """A socket to an address's host, with TLS for https (and tls). `timeout` is in seconds, for each step, `deadline`
    for an exchange. What `gate` stops is not written: AccessDeniedError.

    `context` is asked for only where TLS is spoken; http goes to this machine only, and tcp:// is for protocols that
    turn TLS on themselves. Raises OSError, SettingError for a proxy that is spoken to over TLS itself, and
    NotConfiguredError for http:// to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in _OWN:
        refuse_cleartext(parts.scheme, parts.hostname or "")
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    with EXCHANGE.until(EXCHANGE.end(deadline)):
        way = urlsplit(proxy) if proxy is not None and parts.scheme not in _OWN else None
        plain = _direct(host, port, timeout, deadline) if way is None else _tunnel(way, host, port, timeout, deadline)
        plain.gate = gate
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme not in ("https", "tls"):
                if parts.scheme == "http":
                    refuse_cleartext("http", plain.getpeername()[0])  # where it has really led to
                return plain
            secure = wrap_tls(plain, context(), host)
            if isinstance(secure, BoundedTls):
                secure.set_deadline(deadline, timeout)
                secure.gate = gate
            return secure
        except BaseException:
            plain.close()
            raise


_OWN: Final = ("tcp", "tls")
"""Protocols of their own, which no proxy for HTTP takes."""


def _direct(host: str, port: int, timeout: float, deadline: float) -> BoundedSocket:
    made = bound_socket(connect_host(host, port, lambda: _left(timeout)))
    made.set_deadline(deadline, timeout)
    return made


def _left(timeout: float) -> float:
    left = timeout if EXCHANGE.at is None else min(timeout, EXCHANGE.at - time.monotonic())
    if left <= 0:
        raise TimeoutError("the exchange took longer than its deadline")
    return left


def _tunnel(way: SplitResult, host: str, port: int, timeout: float, deadline: float) -> BoundedSocket:
    if way.scheme != "http" or way.hostname is None:
        raise SettingError(
            "the proxy is spoken to over TLS itself, and the way to this backend cannot use it",
            remedy="name it as http://... in HTTPS_PROXY, or take the backend's host into NO_PROXY",
        )
    line = _direct(way.hostname, way.port or 80, timeout, deadline)
    try:
        place = f"[{host}]:{port}" if ":" in host else f"{host.encode('idna').decode('ascii')}:{port}"
        head = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", *_login(way)]
        line.sendall("\r\n".join([*head, "", ""]).encode("ascii"))
        status = _status(line)
        if not 200 <= status < 300:
            raise ProxyError(str(status))
    except BaseException:
        line.close()
        raise
    return line


def _status(line: socket.socket) -> int:
    """What a proxy answers; its headers are read to their end, and nothing of what comes behind them."""
    answer = bytearray()
    while not answer.endswith((b"\r\n\r\n", b"\n\n")):
        sign = line.recv(1)
        if not sign or len(answer) > _MOST:
            raise OSError("the proxy hung up")
        answer += sign
    match = re.match(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: |\r|\n)", answer)
    if match is None:
        raise OSError("the proxy speaks no HTTP")
    return int(match[1])


def _login(way: SplitResult) -> list[str]:
    if way.username is None:
        return []
    pair = f"{unquote(way.username)}:{unquote(way.password or '')}"
    return ["Proxy-Authorization: Basic " + base64.b64encode(pair.encode()).decode()]
