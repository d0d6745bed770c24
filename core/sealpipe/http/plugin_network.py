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
from sealpipe.http.deadline import EXCHANGE_DEADLINE
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
        from sealpipe.http.plugin_client import make_plugin_client
        from sealpipe.http.tls import make_backend_context

        with _translate_errors():
            context = make_backend_context(os.environ, self._ca_file, authorities, certificate)
        make_context = partial(_make_tls_context, self._ca_file)
        return make_plugin_client(lambda: context, make_context, _find_proxy, TIMEOUT, self._deadline, self._gate)

    def connect(self, url: str, *, ca_file: Path | None = None, timeout: float | None = None) -> socket.socket:
        """A socket, with certificates and proxy as everywhere."""
        from sealpipe.http.plugin_network import connect

        with _translate_errors():
            context, proxy = partial(self._get_context, ca_file), self.proxy(url)
            return connect(url, context, proxy, timeout or TIMEOUT, self._deadline, self._gate)

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """What is done on the network meanwhile, in this thread, is one exchange: it has the deadline together."""
        from sealpipe.http.deadline import EXCHANGE_DEADLINE

        with EXCHANGE_DEADLINE.hold_until(EXCHANGE_DEADLINE.compute_end(self._deadline)):
            yield

    def proxy(self, url: str) -> str | None:
        """The proxy that the environment names for an address; never one for loopback."""
        return _find_proxy(url)

    def tls_context(self) -> ssl.SSLContext:
        """A context for protocols that are not HTTP."""
        from sealpipe.http.sockets import make_guarded_tls

        context = _make_tls_context(self._ca_file)
        context.sslsocket_class = make_guarded_tls(self._gate)
        return context

    def ca_bundle(self) -> Path | None:
        """One PEM file for SDKs that take nothing else; None where the system's own certificates are meant."""
        return self._bundle

    def close(self) -> None:
        """End the connections of the client that plugins share."""
        client: httpx.Client | None = vars(self).pop("_http", None)
        if client is not None:
            client.close()

    def _get_context(self, ca_file: Path | None) -> ssl.SSLContext:
        with self._lock:  # connections are made in several threads, and reading a bundle is dear
            if ca_file not in self._contexts:
                from sealpipe.http.tls import make_tls_context

                with _translate_errors():
                    self._contexts[ca_file] = make_tls_context(os.environ, self._ca_file, ca_file)
            return self._contexts[ca_file]

    @cached_property
    def _http(self) -> httpx.Client:
        from sealpipe.http.plugin_client import make_plugin_client

        make_context = partial(_make_tls_context, self._ca_file)
        return make_plugin_client(make_context, make_context, _find_proxy, TIMEOUT, self._deadline, self._gate)

    @cached_property
    def _bundle(self) -> Path | None:
        from sealpipe.http.tls import list_certificates

        certificate_files = list_certificates(os.environ)
        if self._ca_file is None and not certificate_files:
            return None
        files = [*(certificate_files or [_find_system_bundle()]), *([self._ca_file] if self._ca_file else [])]
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


def _find_system_bundle() -> Path:
    cafile = ssl.get_default_verify_paths().cafile
    if cafile is None:
        import certifi

        cafile = certifi.where()
    return Path(cafile)


def _find_proxy(url: str) -> str | None:
    from sealpipe.http.addresses import find_proxy

    with _translate_errors():
        return find_proxy(url)


def _make_tls_context(ca_file: Path | None) -> ssl.SSLContext:
    from sealpipe.http.tls import make_tls_context

    with _translate_errors():
        return make_tls_context(os.environ, ca_file)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A wrong setting of the network as a plugin may tell it: any other error of theirs is told by its type only."""
    try:
        yield
        return
    except SettingError as error:
        error_for_plugin = NotConfiguredError(error.message, remedy=error.remedy)
    raise error_for_plugin


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
    with EXCHANGE_DEADLINE.hold_until(EXCHANGE_DEADLINE.compute_end(deadline)):
        proxy_url = urlsplit(proxy) if proxy is not None and parts.scheme not in _OWN else None
        connection = (
            _direct(host, port, timeout, deadline)
            if proxy_url is None
            else _connect_through_proxy(proxy_url, host, port, timeout, deadline)
        )
        connection.gate = gate
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme not in ("https", "tls"):
                if parts.scheme == "http":
                    refuse_cleartext("http", connection.getpeername()[0])  # where it has really led to
                return connection
            secure = wrap_tls(connection, context(), host)
            if isinstance(secure, BoundedTls):
                secure.set_deadline(deadline, timeout)
                secure.gate = gate
            return secure
        except BaseException:
            connection.close()
            raise


_OWN: Final = ("tcp", "tls")
"""Protocols of their own, which no proxy for HTTP takes."""


def _direct(host: str, port: int, timeout: float, deadline: float) -> BoundedSocket:
    connection = bound_socket(connect_host(host, port, lambda: _get_remaining(timeout)))
    connection.set_deadline(deadline, timeout)
    return connection


def _get_remaining(timeout: float) -> float:
    remaining = timeout if EXCHANGE_DEADLINE.at is None else min(timeout, EXCHANGE_DEADLINE.at - time.monotonic())
    if remaining <= 0:
        raise TimeoutError("the exchange took longer than its deadline")
    return remaining


def _connect_through_proxy(
    proxy_url: SplitResult, host: str, port: int, timeout: float, deadline: float
) -> BoundedSocket:
    if proxy_url.scheme != "http" or proxy_url.hostname is None:
        raise SettingError(
            "this backend's connection does not support a proxy over TLS",
            remedy="set HTTPS_PROXY to http://..., or add the backend's host to NO_PROXY",
        )
    connection = _direct(proxy_url.hostname, proxy_url.port or 80, timeout, deadline)
    try:
        authority = f"[{host}]:{port}" if ":" in host else f"{host.encode('idna').decode('ascii')}:{port}"
        head = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}", *_make_login_header(proxy_url)]
        connection.sendall("\r\n".join([*head, "", ""]).encode("ascii"))
        status = _read_status(connection)
        if not 200 <= status < 300:
            raise ProxyError(str(status))
    except BaseException:
        connection.close()
        raise
    return connection


def _read_status(connection: socket.socket) -> int:
    """What a proxy answers; its headers are read to their end, and nothing of what comes behind them."""
    head = bytearray()
    while not head.endswith((b"\r\n\r\n", b"\n\n")):
        byte = connection.recv(1)
        if not byte or len(head) > _MOST:
            raise OSError("the proxy closed the connection")
        head += byte
    match = re.match(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: |\r|\n)", head)
    if match is None:
        raise OSError("the proxy's response is not HTTP")
    return int(match[1])


def _make_login_header(proxy_url: SplitResult) -> list[str]:
    if proxy_url.username is None:
        return []
    credentials = f"{unquote(proxy_url.username)}:{unquote(proxy_url.password or '')}"
    return ["Proxy-Authorization: Basic " + base64.b64encode(credentials.encode()).decode()]
