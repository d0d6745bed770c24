"""A TCP server between a client and a service, at which something goes wrong: TLS, CONNECT and
HTTP.

Every request that arrives whole is recorded before its fault is applied. A fault is a function of
one `Exchange` (`faults` has those of several tests); `Faulty` takes a list of them, one a request,
and one for every request after those.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from support.wires import LOOPBACK, Wire

TIMEOUT = 30.0
"""Seconds after which nobody here waits any longer."""


@dataclass(frozen=True)
class Received:
    """One request as it arrived: the head with its blank line, the body, and when (seconds of the
    monotonic clock).
    """

    head: bytes
    body: bytes
    at: float

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode("ascii")

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode("ascii")

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.lower().encode("ascii"):
                return value.strip().decode("latin-1")
        return None


def same_bytes(requests: Sequence[Received]) -> bool:
    """Whether all of these are one request, byte for byte, head and body."""
    return len({(request.head, request.body) for request in requests}) <= 1


@dataclass(frozen=True)
class Answered:
    """An answer of the service, whole."""

    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])


Fault = Callable[["Exchange"], None]
Greeting = Callable[["Faulty", socket.socket], None]


class Exchange:
    """One request on its way: what a fault can do with it."""

    def __init__(self, server: Faulty, client: socket.socket, received: Received) -> None:
        self.server = server
        self.client = client
        self.received = received

    def forward(self) -> Answered:
        """Hand the request to the service and take its whole answer."""
        with socket.create_connection(self.server.service, timeout=TIMEOUT) as upstream:
            upstream.sendall(self.received.head + self.received.body)
            answer = _read_message(upstream, bytearray())
        if answer is None:
            raise AssertionError("the rehearsal hung up")
        return Answered(*answer)

    def send(self, data: bytes) -> None:
        """Send bytes to the client, which may have gone away."""
        with contextlib.suppress(OSError):
            self.client.sendall(data)

    def reset(self) -> None:
        """Cut the connection with an RST."""
        cut(self.client)

    def close(self) -> None:
        """Say no more, but in good order."""
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_WR)
        self.client.close()


def cut(client: socket.socket) -> None:
    """End a connection with an RST."""
    with contextlib.suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def passes(exchange: Exchange) -> None:
    """No fault."""
    answer = exchange.forward()
    exchange.send(answer.head + answer.body)


class Faulty(Wire):
    """The server. `base_url` is what the client is given; the link base stays the rehearsal's own.

    With `tls` it speaks TLS. `greets` has each connection first, before a request is read from it.
    """

    patience = None

    def __init__(
        self,
        service: tuple[str, int],
        *faults: Fault,
        then: Fault = passes,
        tls: ssl.SSLContext | None = None,
        greets: Greeting | None = None,
    ) -> None:
        self.service = service
        self._tls = tls
        self._greets = greets
        self.ending = threading.Event()
        self.committed = threading.Event()
        """A holding fault has its request where it wants it."""
        self.released = threading.Event()
        """Let a holding fault go on."""
        self._lock = threading.Lock()
        self._faults = list(faults)
        self._then = then
        self._received: list[Received] = []
        super().__init__(self._talk)

    @property
    def base_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{LOOPBACK}:{self.port}/v1"

    def received(self) -> list[Received]:
        """Every whole request so far."""
        with self._lock:
            return list(self._received)

    def mend(self) -> None:
        """No fault from now on; listen again if nobody did."""
        with self._lock:
            self._faults, self._then = [], passes
            self._greets = None
        self.released.set()
        self.listen()

    def plan(self, *faults: Fault, then: Fault = passes) -> None:
        """Other faults for what comes next."""
        with self._lock:
            self._faults, self._then = list(faults), then
        self.committed.clear()
        self.released.clear()

    def stop(self) -> None:
        self.ending.set()
        self.released.set()
        super().stop()
        for thread in self._threads.copy():
            thread.join(TIMEOUT)

    def _talk(self, client: socket.socket) -> None:
        if self._greets is not None:
            self._greets(self, client)
        client = client if self._tls is None else self.secured(self._tls, client)
        rest = bytearray()
        with client:
            while (message := _read_message(client, rest)) is not None:
                received = Received(*message, time.monotonic())
                with self._lock:
                    self._received.append(received)
                    fault = self._faults.pop(0) if self._faults else self._then
                fault(Exchange(self, client, received))
                if client.fileno() < 0:
                    return


def _read_message(sock: socket.socket, rest: bytearray) -> tuple[bytes, bytes] | None:
    """One message that has a Content-Length or no body; None where the other side closed before it
    was whole.
    """
    while (end := rest.find(b"\r\n\r\n")) < 0:
        if not _more(sock, rest):
            return None
    head = bytes(rest[: end + 4])
    del rest[: end + 4]
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(rest) < length:
        if not _more(sock, rest):
            return None
    body = bytes(rest[:length])
    del rest[:length]
    return head, body


def _more(sock: socket.socket, rest: bytearray) -> bool:
    piece = sock.recv(65536)
    rest += piece
    return bool(piece)
