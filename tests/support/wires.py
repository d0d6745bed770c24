"""Servers that sit on the wire: TLS before the rehearsal, a proxy that keeps what it is told, and a
company's proxy.

The company's wants a login, and reads what goes through it, under a certificate of its own
authority. What it stands in for is `mitmproxy`, which cannot be installed beside the newest
cryptography and h11.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import trustme

from support.terminal import readable

LOOPBACK = "127.0.0.1"
_SECONDS = 30.0


def accepted(listening: socket.socket) -> Iterator[socket.socket]:
    """Every connection that comes in, until the socket is closed."""
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        yield client


def at_once(connection: socket.socket) -> socket.socket:
    """Every write goes out when it is made, not 40 ms later; of a listening one, those of all it
    accepts.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Wire:
    """A listening socket on loopback; each connection is handed to `serve` in a thread of its
    own.
    """

    patience: float | None = _SECONDS
    """How long a connection may be silent, in seconds."""

    def __init__(self, serve: Callable[[socket.socket], object]) -> None:
        self._serve = serve
        self.connections = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        # Bound, and so ours to the end; while it does not listen, connections are refused. A port
        # that the kernel chose would be given back by `shutdown`, one that was asked for stays: so
        # it is asked for.
        with _bound(0) as chosen:
            self.port: int = chosen.getsockname()[1]
            self._socket = _bound(self.port)
        self.listen()

    def listen(self) -> None:
        """Take connections."""
        with contextlib.suppress(OSError):  # it listens already
            self._socket.listen(64)
        self._start(self._accept)

    def refuse(self) -> None:
        """Refuse connections from now on; the port stays ours."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.refuse()
        self._socket.close()
        for client in self._open.copy():
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # and whoever serves it ends

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, work: Callable[..., object], *words: object) -> None:
        self._threads.append(threading.Thread(target=work, args=words, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        for client in accepted(self._socket):
            at_once(client).settimeout(self.patience)
            self.connections += 1
            self._open.add(client)
            self._start(self._run, client)

    def _run(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self._serve(client)
        self._open.discard(client)

    def secured(self, context: ssl.SSLContext, client: socket.socket) -> ssl.SSLSocket:
        """The same connection under TLS; it ends with the others."""
        secured = context.wrap_socket(client, server_side=True)
        self._open.discard(client)
        self._open.add(secured)
        return secured


def _bound(port: int) -> socket.socket:
    sock = at_once(socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((LOOPBACK, port))
    return sock


def tls(context: ssl.SSLContext, service: tuple[str, int]) -> Wire:
    """TLS, and behind it the service."""

    def serve(client: socket.socket) -> None:
        with (
            context.wrap_socket(client, server_side=True) as secure,
            socket.create_connection(service) as upstream,
        ):
            pump_both(secure, upstream)

    return Wire(serve)


class Proxy(Wire):
    """An HTTP proxy that tunnels every host to one port of this machine.

    `heard` is all that clients told it.
    """

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


def pump_both(
    client: socket.socket, upstream: socket.socket, heard: bytearray | None = None
) -> None:
    """Hand on what comes, both ways, until the client is done.

    In one thread: two at one TLS connection break it.
    """
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


class Intercepting(Wire):
    """The proxy. `routes`: the port on this machine behind each host.

    `asked` is whom it was to connect to.

    `read` is what it read of each connection; `user` and `password` are its login.
    """

    user, password = "us@er", "pass:word"

    def __init__(self, folder: Path, routes: Mapping[str, int]) -> None:
        self._authority = trustme.CA()
        self.ca_file = folder / "proxy-ca.pem"
        self._authority.cert_pem.write_to_path(self.ca_file)
        self._routes = routes
        self.asked: list[str] = []
        self.read: dict[str, bytearray] = {}
        super().__init__(self._intercept)

    def url(self, login: str = "us%40er:pass%3Aword@") -> str:
        """Its address for HTTPS_PROXY."""
        return f"http://{login}127.0.0.1:{self.port}"

    def _intercept(self, client: socket.socket) -> None:
        host, allowed = self._head(client)
        if not allowed:
            client.sendall(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
            )
            return
        self.asked.append(host)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(host).configure_cert(context)
        with (
            self.secured(context, client) as inside,
            socket.create_connection((LOOPBACK, self._routes[host]), timeout=_SECONDS) as behind,
        ):
            pump_both(inside, behind, self.read.setdefault(host, bytearray()))

    def _head(self, client: socket.socket) -> tuple[str, bool]:
        """The host of a CONNECT, and whether its login is right."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = client.recv(4096)
            if not piece:
                raise ConnectionError
            head += piece
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        login = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        assert method == "CONNECT"
        return target.rpartition(":")[0], headers.get("proxy-authorization") == login
