"""The network that plugins are handed: certificates, proxies and deadlines as the client has them."""

from __future__ import annotations

import atexit
import base64
import os
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from sealpipe.errors import NotConfiguredError, SettingError
from sealpipe.http.addresses import connect_host, refuse_cleartext
from sealpipe.http.deadline import EXCHANGE
from sealpipe.http.sockets import BoundedSocket, BoundedTls, bound_socket, wrap_tls
from sealpipe.plugin.context import DEADLINE
from sealpipe.secret_scan import CustodyGate

if TYPE_CHECKING:
    import httpx

TIMEOUT = 30.0
"""Seconds that a plugin's connection, and each read of its answer, may take."""


class PluginNetwork:
    """`sealpipe.plugin.Network`: certificates and proxies as the client has them."""

    def __init__(self, ca_file: Path | None, gate: CustodyGate | None = None, deadline: float | None = None) -> None:
        self._ca_file = ca_file
        self._gate = gate or CustodyGate()
        self._deadline = DEADLINE if deadline is None else deadline
        self._contexts: dict[Path | None, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def http(self, *, authorities: str | None = None, certificate: tuple[Path, Path] | None = None) -> httpx.Client:
        """One client for all plugins of a run, or one for a plugin alone."""
        if authorities is None and certificate is None:
            return self._http
        from sealpipe.http.plugin_client import plugin_client
        from sealpipe.http.tls import backend_context

        with _in_plugins_words():
            context = backend_context(os.environ, self._ca_file, authorities, certificate)
        own = partial(_tls_context, self._ca_file)
        return plugin_client(lambda: context, own, _proxy, TIMEOUT, self._deadline, self._gate)

    def connect(self, url: str, *, ca_file: Path | None = None, timeout: float | None = None) -> socket.socket:
        """A socket, with certificates and proxy as everywhere."""
        from sealpipe.http.plugin_network import connect

        with _in_plugins_words():
            context, proxy = partial(self._context, ca_file), self.proxy(url)
            return connect(url, context, proxy, timeout or TIMEOUT, self._deadline, self._gate)

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """What is done on the network meanwhile, in this thread, is one exchange: it has the deadline together."""
        from sealpipe.http.deadline import EXCHANGE

        with EXCHANGE.until(EXCHANGE.end(self._deadline)):
            yield

    def proxy(self, url: str) -> str | None:
        """The proxy that the environment names for an address; never one for loopback."""
        return _proxy(url)

    def tls_context(self) -> ssl.SSLContext:
        """A context for protocols that are not HTTP."""
        from sealpipe.http.sockets import guarded_tls

        context = _tls_context(self._ca_file)
        context.sslsocket_class = guarded_tls(self._gate)
        return context

    def ca_bundle(self) -> Path | None:
        """One PEM file for SDKs that take nothing else; None where the system's own certificates are meant."""
        return self._bundle

    def close(self) -> None:
        """End the connections of the client that plugins share."""
        client: httpx.Client | None = vars(self).pop("_http", None)
        if client is not None:
            client.close()

    def _context(self, ca_file: Path | None) -> ssl.SSLContext:
        with self._lock:  # connections are made in several threads, and reading a bundle is dear
            if ca_file not in self._contexts:
                from sealpipe.http.tls import tls_context

                with _in_plugins_words():
                    self._contexts[ca_file] = tls_context(os.environ, self._ca_file, ca_file)
            return self._contexts[ca_file]

    @cached_property
    def _http(self) -> httpx.Client:
        from sealpipe.http.plugin_client import plugin_client

        own = partial(_tls_context, self._ca_file)
        return plugin_client(own, own, _proxy, TIMEOUT, self._deadline, self._gate)

    @cached_property
    def _bundle(self) -> Path | None:
        from sealpipe.http.tls import list_certificates

        named = list_certificates(os.environ)
        if self._ca_file is None and not named:
            return None
        files = [*(named or [_system_bundle()]), *([self._ca_file] if self._ca_file else [])]
        try:
            content = b"\n".join(file.read_bytes() for file in files)
        except OSError:
            raise NotConfiguredError(
                "the certificates to trust cannot be read",
                remedy="check SEALPIPE_CA_FILE, SSL_CERT_FILE and SSL_CERT_DIR: PEM files that this user can read",
            ) from None
        descriptor, name = tempfile.mkstemp(prefix="sealpipe-ca-", suffix=".pem")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        atexit.register(partial(Path(name).unlink, missing_ok=True))
        return Path(name)


def _system_bundle() -> Path:
    cafile = ssl.get_default_verify_paths().cafile
    if cafile is None:
        import certifi

        cafile = certifi.where()
    return Path(cafile)


def _proxy(url: str) -> str | None:
    from sealpipe.http.addresses import proxy_for

    with _in_plugins_words():
        return proxy_for(url)


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    from sealpipe.http.tls import tls_context

    with _in_plugins_words():
        return tls_context(os.environ, ca_file)


@contextmanager
def _in_plugins_words() -> Iterator[None]:
    """A wrong setting of the network as a plugin may tell it: any other error of theirs is told by its type only."""
    try:
        yield
        return
    except SettingError as error:
        told = NotConfiguredError(error.message, remedy=error.remedy)
    raise told


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
            "this backend's connection does not support a proxy over TLS",
            remedy="set HTTPS_PROXY to http://..., or add the backend's host to NO_PROXY",
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
            raise OSError("the proxy closed the connection")
        answer += sign
    match = re.match(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: |\r|\n)", answer)
    if match is None:
        raise OSError("the proxy's response is not HTTP")
    return int(match[1])


def _login(way: SplitResult) -> list[str]:
    if way.username is None:
        return []
    pair = f"{unquote(way.username)}:{unquote(way.password or '')}"
    return ["Proxy-Authorization: Basic " + base64.b64encode(pair.encode()).decode()]
