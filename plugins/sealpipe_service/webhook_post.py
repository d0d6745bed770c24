"""One delivery attempt: a POST on its own connection. No proxy, no redirects, limited time.

The host is looked up once, every address that it has is checked, and the connection goes to one of
those: a name that means something else a moment later changes nothing.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from urllib.parse import urlsplit

from .addresses import read_address
from .public_addresses import Allows, allow_all

READ_SECONDS = 10.0
TOTAL_SECONDS = 10.0
NOT_SENT = "not sent: "
"""How the result of an attempt begins that was none, by our own decision."""


class RefusedAddressError(Exception):
    """The host has an address that nothing is sent to. Its text is for the operator."""


class WebhookPost:
    """A delivery attempt, which any thread can end with `abort`."""

    def __init__(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        allows: Allows = allow_all,
        ca_file: str | None = None,
    ) -> None:
        parts = urlsplit(url)
        self._target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        self._body, self._headers = body, dict(headers)
        self._aborted = False
        host = parts.hostname or ""
        # Without a port, http.client would parse the end of an IPv6 address as one.
        self._connection = (
            _Secure(host, parts.port or 443, allows, tls_context(ca_file))
            if parts.scheme == "https"
            else _Plain(host, parts.port or 80, allows)
        )

    def send(self) -> int | str:
        """Send it; return the status, or the name of the error. Raises nothing."""
        try:
            with time_limit(self.abort):
                return self._exchange()
        except RefusedAddressError as error:
            return f"{NOT_SENT}{error}"
        # ValueError: a host that cannot be encoded
        except (OSError, http.client.HTTPException, ValueError) as error:
            return TimeoutError.__name__ if self._aborted else type(error).__name__
        finally:
            self._connection.close()

    def _exchange(self) -> int | str:
        self._connection.connect()
        if self._aborted:  # while the name was looked up: there was nothing to cut
            return TimeoutError.__name__
        self._connection.request("POST", self._target, self._body, self._headers)
        status = self._connection.getresponse().status
        # http.client would accept truncated headers as complete
        return TimeoutError.__name__ if self._aborted else status

    def abort(self) -> None:
        """End the attempt now."""
        self._aborted = True
        sock = self._connection.sock
        if sock is not None:
            cut(sock)


@contextlib.contextmanager
def time_limit(abort: Callable[[], None]) -> Iterator[None]:
    """Abort an attempt that takes longer than TOTAL_SECONDS."""
    timer = threading.Timer(TOTAL_SECONDS, abort)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def cut(sock: socket.socket) -> None:
    """End a connection that another thread uses.

    Not by the method of a socket with TLS, for that forgets TLS first: what the other thread sends
    at this moment would go in clear.
    """
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _Plain(http.client.HTTPConnection):
    def __init__(self, host: str, port: int, allows: Allows) -> None:
        super().__init__(host, port, timeout=READ_SECONDS)
        self._allows = allows

    def connect(self) -> None:
        self.sock = _connect(self.host, self.port, self._allows)


class _Secure(http.client.HTTPSConnection):
    def __init__(self, host: str, port: int, allows: Allows, tls: ssl.SSLContext) -> None:
        self._tls = tls
        super().__init__(host, port, timeout=READ_SECONDS, context=self._tls)
        self._allows = allows

    def connect(self) -> None:
        self.sock = _connect(self.host, self.port, self._allows)
        self.sock = secure = self._tls.wrap_socket(
            self.sock, server_hostname=self.host, do_handshake_on_connect=False
        )
        secure.do_handshake()  # only now, for `abort` ends it, too


def _connect(host: str, port: int, allows: Allows) -> socket.socket:
    """Connect to an address of a host. Raises OSError and RefusedAddressError."""
    end = time.monotonic() + TOTAL_SECONDS
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, where in found:
        address = read_address(str(where[0]))
        if address is None or not allows(address):
            raise RefusedAddressError(f"{address or 'an address'} is not public")
    failure = OSError("no address")
    for family, kind, protocol, _, where in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(max(0.01, end - time.monotonic()))
            sock.connect(where)
        except OSError as error:
            sock.close()
            failure = error
        else:
            sock.settimeout(READ_SECONDS)
            return sock
    raise failure


@cache
def tls_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Return what verifies a server: the authorities that the machine trusts, and those of a file.

    Raises OSError and SSLError where the file cannot be read.
    """
    # not ssl.create_default_context, which obeys SSLKEYLOGFILE
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context
