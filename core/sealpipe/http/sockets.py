"""Sockets that keep a wall-clock deadline and send no credential, for plugins that speak a protocol themselves.

An exchange begins with the connection, and again with what is written after something was read: a peer that drips is
late, and a connection that is kept for the next call is not. Where the plugin says how long the whole may take
(`Network.exchange`), that holds.

What leaves passes the custody gate before it is written, together with the end of what was written before it.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any

from sealpipe.errors import AccessDeniedError, UsageError
from sealpipe.http.deadline import EXCHANGE_DEADLINE
from sealpipe.secret_scan import OVERLAP, CustodyGate

if TYPE_CHECKING:
    _Base = socket.socket
else:
    _Base = object


class _Bounded(_Base):
    gate: CustodyGate | None = None
    """What is written has to pass it. None: nothing is looked at."""

    _tail = b""
    _is_checked = False
    _step: float | None = None
    _seconds: float | None = None
    _end: float = math.inf
    _has_received = False

    def set_deadline(self, seconds: float, step: float | None) -> None:
        """From now on: `seconds` for an exchange, `step` for each read and write of it."""
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
        self._is_checked = True  # with TLS it is `send` that writes, piece by piece
        try:
            super().sendall(*args)
        finally:
            self._is_checked = False

    def _check_outgoing(self, data: Any) -> None:
        """Let the gate see what is about to be written: AccessDeniedError, and nothing of it is."""
        if self.gate is None:
            return
        piece = bytes(data) if self._has_received else self._tail + bytes(data)
        try:
            self.gate.check("a line", piece)
        except UsageError as error:
            refusal = make_access_denied_error(self._name_peer(), error)
        else:
            self._tail = piece[-OVERLAP:]
            return
        raise refusal

    def _name_peer(self) -> str:
        return str(getattr(self, "server_hostname", None) or self.getpeername()[0])

    def _apply_deadline(self, *, writes: bool = False) -> None:
        """Let the next step take what is left. Raises TimeoutError."""
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
    """Without TLS."""


class BoundedTls(_Bounded, ssl.SSLSocket):
    """With TLS. A context makes it where it is named as its `sslsocket_class`."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - its signature
        """As one step, however many reads it has."""
        self._apply_deadline()
        super().do_handshake(block)


def make_guarded_tls(custody_gate: CustodyGate) -> type[BoundedTls]:
    """The class of sockets for a context that somebody else turns TLS on with."""

    class Guarded(BoundedTls):
        gate = custody_gate

    return Guarded


def make_access_denied_error(host: str, error: UsageError) -> AccessDeniedError:
    """What the gate says, in a plugin's own words: any other error is told by its type only."""
    return AccessDeniedError(f"the data for {host}: {error.message}", remedy=error.remedy)


def bound_socket(plain: socket.socket) -> BoundedSocket:
    """The same connection, bound."""
    return BoundedSocket(plain.family, plain.type, plain.proto, plain.detach())


def wrap_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """TLS over a connection."""
    context.sslsocket_class = BoundedTls
    return context.wrap_socket(plain, server_hostname=host)
