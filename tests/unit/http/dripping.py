"""A peer that is never silent for long, and never done: a byte every so often, for ever."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import Final

from support.wires import Wire

Serve = Callable[[socket.socket], object]

EVERY: Final = 0.4
"""Seconds between two bytes: far below any timeout of a single read."""

_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_STARTS: Final[Mapping[str, tuple[bool, bytes, bytes]]] = {
    "head": (True, b"", _OK + b"x-drip: "),
    "line": (True, b"", b"HTTP/1.1 200 O"),
    "body": (True, _OK + b"content-length: 1000000\r\n\r\n", b"{"),
    "chunks": (True, _OK + b"transfer-encoding: chunked\r\n\r\n", b"fffff\r\n"),
    "handshake": (True, b"\x16\x03\x03\x3f\xff", b"\x02"),
    "greeting": (False, b"", b"220 mail.example "),
    "greetings": (False, b"220-mail.example\r\n", b"220-still\r\n" * 100),
}
"""By what drips: whether it is asked first, what is said at once, and what comes byte by byte (then
for ever `a`).
"""


ANSWERS: Final = ("head", "line", "body", "chunks")
"""What may drip of an answer over HTTP."""


class Held(Wire):
    """A server that notes for how many seconds each connection was held by the other side."""

    def __init__(self, serve: Serve) -> None:
        self.held: list[float] = []

        def noted(client: socket.socket) -> None:
            began = time.monotonic()
            try:
                serve(client)
            finally:
                self.held.append(time.monotonic() - began)

        super().__init__(noted)


def dripping(what: str) -> Held:
    """A server on loopback."""
    asked, at_once, slowly = _STARTS[what]

    def serve(client: socket.socket) -> None:
        if asked:
            client.recv(65536)
        client.sendall(at_once)
        drip(client, slowly)

    return Held(serve)


def drip(client: socket.socket, slowly: bytes) -> None:
    """Byte by byte, until the other side hangs up."""
    client.settimeout(EVERY)
    sent = 0
    while True:
        client.sendall(slowly[sent : sent + 1] or b"a")
        sent += 1
        try:
            if not client.recv(65536):
                return
        except TimeoutError:
            pass
