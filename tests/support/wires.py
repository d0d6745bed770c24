"""Servers that sit on the wire: one that speaks TLS before the rehearsal, and a proxy that keeps what it is told."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Self

from support.ready import readable

LOOPBACK = "127.0.0.1"
_SECONDS = 30.0


def at_once(connection: socket.socket) -> socket.socket:
    """Every write goes out when it is made, not 40 ms later; of a listening one, those of all it accepts."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Wire:
    """A listening socket on loopback; each connection is handed to `serve` in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], object]) -> None:
        self._serve = serve
        self._socket = at_once(socket.create_server((LOOPBACK, 0)))
        self.port: int = self._socket.getsockname()[1]
        self.connections = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for client in self._open.copy():
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # and whoever serves it ends

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            client.settimeout(_SECONDS)
            threading.Thread(target=self._run, args=(client,), daemon=True).start()

    def _run(self, client: socket.socket) -> None:
        self._open.add(client)
        with client, contextlib.suppress(OSError):
            self._serve(client)
        self._open.discard(client)


def tls(context: ssl.SSLContext, service: tuple[str, int]) -> Wire:
    """TLS, and behind it the service."""

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure, socket.create_connection(service) as upstream:
            pump_both(secure, upstream)

    return Wire(serve)


class Proxy(Wire):
    """An HTTP proxy that tunnels every host to one port of this machine. `heard` is all that clients told it."""

    def __init__(self, port: int) -> None:
        super().__init__(self._tunnel)
        self.heard = bytearray()
        self._port = port

    def _tunnel(self, client: socket.socket) -> None:
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            byte = client.recv(1)
            if not byte:
                return
            head += byte
        self.heard += head
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with socket.create_connection((LOOPBACK, self._port)) as upstream:
            pump_both(client, upstream, self.heard)


def pump_both(client: socket.socket, upstream: socket.socket, heard: bytearray | None = None) -> None:
    """Hand on what comes, both ways, until the client is done. In one thread: two at one TLS connection break it."""
    at_once(upstream)
    open_ends = {client: upstream, upstream: client}
    with contextlib.suppress(OSError):
        while client in open_ends:
            for source in _ready(list(open_ends)):
                data = source.recv(65536)
                if not data:
                    del open_ends[source]
                    continue
                if heard is not None and source is client:
                    heard += data
                open_ends[source].sendall(data)


def _ready(ends: list[socket.socket]) -> list[socket.socket]:
    """Those with something to read; a TLS connection may have it in store already."""
    pending = [end for end in ends if isinstance(end, ssl.SSLSocket) and end.pending()]
    return pending or readable(ends)
