"""A receiver that reads a request and answers at once: what posting costs without what a service
does then.
"""

from __future__ import annotations

import contextlib
import socket
import threading

_ANSWER = b'{"short_code":"received","expired_at":null,"custody":null}'
_HEAD = (
    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    % len(_ANSWER)
)


def start() -> int:
    """Listen on loopback, in a thread; the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listening,), daemon=True).start()
    port: int = listening.getsockname()[1]
    return port


def _accept(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    buffer = bytearray(1024 * 1024)
    with connection, contextlib.suppress(ConnectionError):
        while head := _head(connection):
            names, _, begun = head.partition(b"\r\n\r\n")
            left = _length(names) - len(begun)
            while left > 0:
                left -= connection.recv_into(buffer) or left
            connection.sendall(_HEAD + _ANSWER)


def _head(connection: socket.socket) -> bytes:
    """What came up to the end of the headers and a little more; empty where the caller has hung
    up.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(4096)
        if not piece:
            return b""
        head += piece
    return head


def _length(names: bytes) -> int:
    lines = (line.lower().partition(b":") for line in names.splitlines())
    return next(int(value) for name, _, value in lines if name == b"content-length")
