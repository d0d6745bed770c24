"""The connections of a server: how many, how fast, and what is a request at all.

uvicorn closes connections that are idle between two requests, and has no limit for whoever sends a
head, sends a body or takes an answer slowly. Here are all of those limits.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Collection, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .addresses import Network, name_stranger, read_address
from .responses import HEADERS

WINDOW_SECONDS: Final = 10.0
"""For a handshake of TLS; for the first head; for each other from its first byte on."""
LEAST_BYTES: Final = 10 * 1024
"""What has to arrive of a body, or of an answer at its caller, in so many seconds."""
LONGEST_HEAD: Final = 16 * 1024
MOST: Final = 1000
MOST_OF_ADDRESS: Final = 100
"""Connections of a process: all, and those of one address that is neither ours nor a proxy's."""
TWICE: Final = 2
"""So often as many are accepted, with those whose handshake has not ended."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(rb"%b /[!-~]* HTTP/1\.[01]\r\n(?:%b:[^\r\n\0]*\r\n)*\r\n" % (_TOKEN, _TOKEN))
_HEAD_END = re.compile(rb"\n\r?\n")
_BODY_END = re.compile(rb"\A\Z|(?:\A|\r\n)\r\n\Z")
"""Of what h11 reads last: nothing where the body's length was told, else the end of its chunks."""
_FRAMING = re.compile(rb"\r\n(?:content-length|transfer-encoding):", re.IGNORECASE)
_ENCODED = re.compile(rb"[^\r]*1\.0(?=\r).*\r\ntransfer-encoding:", re.IGNORECASE | re.DOTALL)


class StrictParser(h11.Connection):
    """Refuses requests that two programs could read differently, which h11 would read.

    No line of a head ends without CR, none goes on in the next one, one header at most says where
    the body ends, and the target is a path. Behind the last chunk stands an empty line.
    """

    def next_event(self) -> Any:
        """Return the next event. Raises RemoteProtocolError."""
        received, _ = self.trailing_data
        if self.their_state is h11.IDLE:
            end = _HEAD_END.search(received)
            if end is not None and not is_plain(received[: end.end()]):
                raise h11.RemoteProtocolError("the head is long, or can be read in two ways")
        event = super().next_event()
        if isinstance(event, h11.EndOfMessage):
            last = received[: len(received) - len(self.trailing_data[0])]
            if event.headers or not _BODY_END.search(last):
                raise h11.RemoteProtocolError("the body's end can be read in two ways")
        return event


def is_plain(head: bytes) -> bool:
    """Return whether a head has a usual length, and all programs read it as we do."""
    if len(head) > LONGEST_HEAD or not _HEAD.fullmatch(head) or _ENCODED.match(head):
        return False
    return len(_FRAMING.findall(head)) <= 1


class BoundedConnection(H11Protocol):
    """A connection of uvicorn's, which `Crowd` looks at once a second."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = StrictParser(h11.SERVER, LONGEST_HEAD)
        self._crowd: Crowd = self.app_state[CROWD_KEY]
        self._received = 0
        self._stage: tuple[object, object] = (None, None)
        self._since = 0.0
        self._at_first = (0, (0, False))
        """What had been received, and acknowledged, when the window began."""

    def connection_made(self, transport: Any) -> None:
        """Begin, if there is room."""
        super().connection_made(transport)
        if not self._crowd.enter(self, self.client[0] if self.client else None):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._crowd.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count, and go on."""
        self._received += len(data)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; in the middle of an answer there is nothing to say."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = f"{msg}\n".encode("ascii")
        headers = {**HEADERS, "content-type": "text/plain", "connection": "close"}
        start = h11.Response(
            status_code=400,
            headers=[*headers.items(), ("content-length", str(len(body)))],
            reason="Bad Request",
        )
        for event in (start, h11.Data(body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def is_idle(self) -> bool:
        """Return whether nothing of a request has come, and nothing is answered."""
        return (
            self.conn.their_state is h11.IDLE
            and not self.conn.trailing_data[0]
            and (self.cycle is None or self.cycle.response_complete)
        )

    def look(self, now: float) -> None:
        """Close the connection if its caller was too slow in the window that ends."""
        waits_for = self.conn.their_state
        is_head = waits_for is h11.IDLE and (self.cycle is None or not self.is_idle())
        stage = ("head" if is_head else waits_for, self.cycle)
        if stage == self._stage:
            if now - self._since < WINDOW_SECONDS:
                return
            if is_head or self._is_slow(is_body=waits_for is h11.SEND_BODY):
                self.transport.abort()
                return
        self._stage, self._since = stage, now
        self._at_first = (self._received, self._acknowledged())

    def _is_slow(self, *, is_body: bool) -> bool:
        received, (acknowledged, had_more) = self._at_first
        taken, has_more = self._acknowledged()
        if is_body and not self.flow.read_paused and self._received - received < LEAST_BYTES:
            return True
        return had_more and has_more and taken - acknowledged < LEAST_BYTES

    def _acknowledged(self) -> tuple[int, bool]:
        """Return how many bytes the other side has taken, and whether there are more for it.

        Only Linux knows, and only of TCP.
        """
        try:
            told = self.transport.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size
            )
            unacknowledged, acknowledged, unsent = _TCP_INFO.unpack(told)
        except (OSError, AttributeError, struct.error):
            return 0, False
        return acknowledged, acknowledged > 0 and unacknowledged + unsent > 0


_TCP_INFO = struct.Struct("@24xI92xQ16xI")
"""Of Linux's `tcp_info`: segments on the way, bytes that were acknowledged, bytes not sent yet."""

CROWD_KEY: Final = "sealpipe_service.crowd"
"""Key of a `Crowd` in the state of uvicorn's application."""


class Door(socket.socket):
    """A listening socket that closes at once what comes when too many connections are open.

    `Crowd` knows those alone whose handshake has ended: others would use up all descriptors.
    """

    def __init__(self, listening: socket.socket, proxies: Sequence[Network]) -> None:
        super().__init__(fileno=listening.detach())
        self._proxies = proxies
        self._accepted = WeakKeyDictionary[socket.socket, str | None]()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raises ConnectionAbortedError for one that was closed."""
        accepted, where = super().accept()
        address = read_address(where[0]) if isinstance(where, tuple) else None
        stranger = name_stranger(address, self._proxies)
        names = [name for each, name in self._accepted.items() if each.fileno() >= 0]
        is_one_of_many = stranger and names.count(stranger) >= TWICE * MOST_OF_ADDRESS
        if len(names) >= TWICE * MOST or is_one_of_many:
            accepted.close()
            raise ConnectionAbortedError
        self._accepted[accepted] = stranger
        return accepted, where


class Crowd:
    """The open connections of a process, in the order in which they came."""

    def __init__(self, proxies: Sequence[Network]) -> None:
        self._proxies = proxies
        self._open: dict[BoundedConnection, str | None] = {}

    def enter(self, connection: BoundedConnection, peer: str | None) -> bool:
        """Take a connection in, in place of an idle one if there are too many; or refuse it."""
        address = read_address(peer) if peer else None
        stranger = name_stranger(address, self._proxies)
        if stranger is not None:
            others = [each for each, name in self._open.items() if name == stranger]
            if not self._has_room(others, MOST_OF_ADDRESS):
                return False
        if not self._has_room(self._open, MOST):
            return False
        self._open[connection] = stranger
        return True

    def _has_room(self, others: Collection[BoundedConnection], most: int) -> bool:
        if len(others) < most:
            return True
        idle = next((each for each in others if each.is_idle()), None)
        if idle is None:
            return False
        idle.transport.abort()
        self.leave(idle)
        return True

    def leave(self, connection: BoundedConnection) -> None:
        """Let a connection go."""
        self._open.pop(connection, None)

    def look(self, now: float) -> None:
        """Close the connections of slow callers."""
        for connection in list(self._open):
            connection.look(now)
