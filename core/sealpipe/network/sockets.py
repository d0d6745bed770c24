"""Sockets with a wall-clock deadline, for plugins that implement a protocol themselves.

They refuse to send a credential of the service.

An exchange begins with the connection, and again with the first write after a read: a peer that
sends slowly hits the deadline, a connection that is reused for the next call does not. The deadline
of `Network.exchange` applies as well.

Data passes the custody gate before it is written, together with the end of the data written before
it.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpcore

from sealpipe.custody_gate import CustodyGate, credential_leak_error
from sealpipe.errors import AccessDeniedError, SettingError, UsageError
from sealpipe.network.connections import (
    EXCHANGE_DEADLINE,
    DeadlineBackend,
    refuse_cleartext,
    resolve_host,
)
from sealpipe.network.service_network import make_pool_proxy, silence_httpcore
from sealpipe.spellings import REACH

if TYPE_CHECKING:
    _Base = socket.socket
else:
    _Base = object


class _Bounded(_Base):
    gate: CustodyGate | None = None
    """Checks what is written; None for no check."""

    _tail = b""
    _is_checked = False
    _step: float | None = None
    _seconds: float | None = None
    _end: float = math.inf
    _has_received = False

    def set_deadline(self, seconds: float, step: float | None) -> None:
        """From now on allow `seconds` for an exchange, and `step` seconds for a read or write."""
        self._seconds, self._step, self._end, self._has_received = (
            seconds,
            step,
            EXCHANGE_DEADLINE.compute_end(seconds),
            False,
        )

    def settimeout(self, value: float | None, /) -> None:
        self._step = value
        super().settimeout(value)

    def gettimeout(self) -> float | None:
        return self._step

    def recv(self, *args: Any) -> bytes:
        self._apply_deadline()
        data = super().recv(*args)
        self._has_received = True
        return data

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self._apply_deadline()
        length = super().recv_into(*args, **kwargs)
        self._has_received = True
        return length

    def send(self, *args: Any) -> int:
        if not self._is_checked:
            self._check_outgoing(args[0])
        self._apply_deadline(writes=True)
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        self._check_outgoing(args[0])
        self._apply_deadline(writes=True)
        self._is_checked = True  # with TLS, `sendall` calls `send` for each piece
        try:
            super().sendall(*args)
        finally:
            self._is_checked = False

    def _check_outgoing(self, data: Any) -> None:
        """Have the gate check data before it is written. Raises AccessDeniedError."""
        if self.gate is None:
            return
        piece = bytes(data) if self._has_received else self._tail + bytes(data)
        try:
            self.gate.check("a line", piece)
        except UsageError as error:
            refusal = make_access_denied_error(self.gate, self._name_peer(), error)
        else:
            self._tail = piece[-REACH:]
            return
        raise refusal

    def _name_peer(self) -> str:
        return str(getattr(self, "server_hostname", None) or self.getpeername()[0])

    def _apply_deadline(self, *, writes: bool = False) -> None:
        """Set the next step's timeout to the remaining time. Raises TimeoutError."""
        now = time.monotonic()
        if writes and self._has_received and self._seconds is not None:
            self._has_received, self._end = False, now + self._seconds
        end = self._end if EXCHANGE_DEADLINE.at is None else min(self._end, EXCHANGE_DEADLINE.at)
        if end == math.inf:
            return
        remaining = end - now
        if remaining <= 0:
            raise TimeoutError("the exchange took longer than its deadline")
        super().settimeout(remaining if self._step is None else min(self._step, remaining))


class BoundedSocket(_Bounded, socket.socket):
    """A socket without TLS."""


class BoundedTls(_Bounded, ssl.SSLSocket):
    """A socket with TLS. Contexts make it if it is their `sslsocket_class`."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - its signature
        """Do the handshake as one step, however many reads it takes."""
        self._apply_deadline()
        super().do_handshake(block)


def make_guarded_tls(custody_gate: CustodyGate) -> type[BoundedTls]:
    """Return a socket class for a context that a library uses to start TLS itself."""

    class Guarded(BoundedTls):
        gate = custody_gate

    return Guarded


def make_access_denied_error(gate: CustodyGate, host: str, error: UsageError) -> AccessDeniedError:
    """Return the gate's error as a plugin's: of any other error, users see only the type.

    A host that contains one of our secrets is not shown.
    """
    shown = "[withheld]" if gate.holds(host.encode()) else host
    return AccessDeniedError(f"the data for {shown}: {error.message}", remedy=error.remedy)


def bound_socket(plain: socket.socket) -> BoundedSocket:
    """Return the connection as a BoundedSocket; `plain` is detached."""
    return BoundedSocket(plain.family, plain.type, plain.proto, plain.detach())


def wrap_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """Start TLS over a connection."""
    context.sslsocket_class = BoundedTls
    return context.wrap_socket(plain, server_hostname=host)


def connect_host(host: str, port: int, get_remaining: Callable[[], float]) -> socket.socket:
    """Connect over TCP to the first address that accepts.

    `get_remaining` returns the seconds left for the next step.

    Raises OSError, and TimeoutError if `get_remaining` does.
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


_PORTS: Final = {"https": 443, "http": 80}
_OTHER_PROTOCOLS: Final = ("tcp", "tls")
"""Schemes of protocols that an HTTP proxy cannot forward."""


class ProxyError(OSError):
    """The proxy refused to connect. The text is the status of its response."""


def connect(
    url: str,
    context: Callable[[], ssl.SSLContext],
    proxy: str | None,
    timeout: float,
    deadline: float,
    gate: CustodyGate | None = None,
) -> socket.socket:
    """Return a socket to a URL's host, with TLS for https:// and tls://.

    `timeout` is in seconds for each step, `deadline` in seconds for each exchange. `context` is
    called only for TLS. http:// is for this machine only; tcp:// is for protocols that start TLS
    themselves. Writing what `gate` stops raises AccessDeniedError. Raises OSError, SettingError for
    an https:// proxy, and NotConfiguredError for http:// to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in _OTHER_PROTOCOLS:
        refuse_cleartext(parts.scheme, parts.hostname or "")
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    if gate is not None and gate.holds(host.encode()):  # DNS and a proxy would see it
        raise make_access_denied_error(gate, host, credential_leak_error("an address"))
    with EXCHANGE_DEADLINE.hold_until(EXCHANGE_DEADLINE.compute_end(deadline)):
        connection = (
            _connect_directly(host, port, timeout, deadline)
            if proxy is None or parts.scheme in _OTHER_PROTOCOLS
            else _connect_through_proxy(proxy, host, port, timeout, deadline)
        )
        connection.gate = gate
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme not in ("https", "tls"):
                if parts.scheme == "http":
                    # A name may resolve to another machine.
                    refuse_cleartext("http", connection.getpeername()[0])
                return connection
            secure = wrap_tls(connection, context(), host)
            if isinstance(secure, BoundedTls):
                secure.set_deadline(deadline, timeout)
                secure.gate = gate
            return secure
        except BaseException:
            connection.close()
            raise


def _connect_directly(host: str, port: int, timeout: float, deadline: float) -> BoundedSocket:
    connection = bound_socket(connect_host(host, port, lambda: _get_remaining(timeout)))
    connection.set_deadline(deadline, timeout)
    return connection


def _get_remaining(timeout: float) -> float:
    remaining = (
        timeout
        if EXCHANGE_DEADLINE.at is None
        else min(timeout, EXCHANGE_DEADLINE.at - time.monotonic())
    )
    if remaining <= 0:
        raise TimeoutError("the exchange took longer than its deadline")
    return remaining


def _connect_through_proxy(
    proxy: str, host: str, port: int, timeout: float, deadline: float
) -> BoundedSocket:
    proxy_of_pool = make_pool_proxy(proxy, None)
    if proxy_of_pool is None or proxy_of_pool.url.scheme != b"http":
        raise SettingError(
            "this backend's connection does not support a proxy over TLS",
            remedy="set HTTPS_PROXY to http://..., or add the backend's host to NO_PROXY",
        )
    authority = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    target = f"{authority}:{port}".encode("ascii")
    url = proxy_of_pool.url
    request = httpcore.Request(
        "CONNECT",
        httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=target),
        headers=[(b"Host", target), *proxy_of_pool.headers],
        extensions={"timeout": dict.fromkeys(("connect", "read", "write"), timeout)},
    )
    backend = DeadlineBackend(EXCHANGE_DEADLINE)
    # No pool: it drops the causes of errors.
    with httpcore.HTTPConnection(url.origin, network_backend=backend) as line:
        with _translate_errors(), silence_httpcore():
            response = line.handle_request(request)
        if not 200 <= response.status < 300:
            raise ProxyError(str(response.status))
        # Until our TLS begins, the host behind the proxy has nothing to say.
        connection = bound_socket(response.extensions["network_stream"].get_extra_info("socket"))
    connection.set_deadline(deadline, timeout)
    return connection


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise httpcore's errors as a socket would."""
    try:
        yield
        return
    except httpcore.TimeoutException as error:
        failure: Exception = TimeoutError(str(error))
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        cause = error.__cause__
        failure = (
            cause
            if isinstance(cause, OSError)
            else OSError("the proxy closed the connection, or its response is not HTTP")
        )
    raise failure
