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
from sealpipe.http.deadline import EXCHANGE
from sealpipe.secret_scan import OVERLAP, CustodyGate

if TYPE_CHECKING:
    _Base = socket.socket
else:
    _Base = object


class _Bounded(_Base):
    gate: CustodyGate | None = None
    """What is written has to pass it. None: nothing is looked at."""

    _before = b""
    _passed = False
    _step: float | None = None
    _seconds: float | None = None
    _end: float = math.inf
    _heard = False

    def set_deadline(self, seconds: float, step: float | None) -> None:
        """From now on: `seconds` for an exchange, `step` for each read and write of it."""
        self._seconds, self._step, self._end, self._heard = seconds, step, EXCHANGE.end(seconds), False

    def settimeout(self, value: float | None, /) -> None:
        self._step = value
        super().settimeout(value)

    def gettimeout(self) -> float | None:
        return self._step

    def recv(self, *given: Any) -> bytes:
        self._cut()
        data = super().recv(*given)
        self._heard = True
        return data

    def recv_into(self, *given: Any, **named: Any) -> int:
        self._cut()
        length = super().recv_into(*given, **named)
        self._heard = True
        return length

    def send(self, *given: Any) -> int:
        if not self._passed:
            self._pass(given[0])
        self._cut(writes=True)
        return super().send(*given)

    def sendall(self, *given: Any) -> None:
        self._pass(given[0])
        self._cut(writes=True)
        self._passed = True  # with TLS it is `send` that writes, piece by piece
        try:
            super().sendall(*given)
        finally:
            self._passed = False

    def _pass(self, data: Any) -> None:
        """Let the gate see what is about to be written: AccessDeniedError, and nothing of it is."""
        if self.gate is None:
            return
        piece = bytes(data) if self._heard else self._before + bytes(data)
        try:
            self.gate.check("a line", piece)
        except UsageError as error:
            refusal = access_denied(self._place(), error)
        else:
            self._before = piece[-OVERLAP:]
            return
        raise refusal

    def _place(self) -> str:
        return str(getattr(self, "server_hostname", None) or self.getpeername()[0])

    def _cut(self, *, writes: bool = False) -> None:
        """Let the next step take what is left. Raises TimeoutError."""
        now = time.monotonic()
        if writes and self._heard and self._seconds is not None:
            self._heard, self._end = False, now + self._seconds
        end = self._end if EXCHANGE.at is None else min(self._end, EXCHANGE.at)
        if end == math.inf:
            return
        left = end - now
        if left <= 0:
            raise TimeoutError("the exchange took longer than its deadline")
        super().settimeout(left if self._step is None else min(self._step, left))


class BoundedSocket(_Bounded, socket.socket):
    """Without TLS."""


class BoundedTls(_Bounded, ssl.SSLSocket):
    """With TLS. A context makes it where it is named as its `sslsocket_class`."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - its signature
        """As one step, however many reads it has."""
        self._cut()
        super().do_handshake(block)


def guarded_tls(by: CustodyGate) -> type[BoundedTls]:
    """The class of sockets for a context that somebody else turns TLS on with."""

    class Guarded(BoundedTls):
        gate = by

    return Guarded


def access_denied(host: str, error: UsageError) -> AccessDeniedError:
    """What the gate says, in a plugin's own words: any other error is told by its type only."""
    return AccessDeniedError(f"the data for {host}: {error.message}", remedy=error.remedy)


def bound_socket(plain: socket.socket) -> BoundedSocket:
    """The same connection, bound."""
    return BoundedSocket(plain.family, plain.type, plain.proto, plain.detach())


def wrap_tls(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """TLS over a connection."""
    context.sslsocket_class = BoundedTls
    return context.wrap_socket(plain, server_hostname=host)
