"""A TCP server between a client and the rehearsal: for what the service's own fault plan (`front`) cannot do.

That is TLS, what comes before HTTP, CONNECT, counting connections, holding a request, and keeping all bytes.

Every request that arrives whole is recorded before its fault is applied. A fault is a function of one
`Exchange`; `Faulty` takes a list of them, one a request, and one for every request after those.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from support.wires import LOOPBACK, Wire

DRIP = 0.2
DROPS = 100
"""Far more than any deadline here lasts; not for ever, so that who waits for them all fails and does not hang."""
_TIMEOUT = 30.0
_REASON = "As The Fault Wants It"


@dataclass(frozen=True)
class Received:
    """One request as it arrived: the head with its blank line, and the body."""

    head: bytes
    body: bytes

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
        with socket.create_connection(self.server.service, timeout=_TIMEOUT) as upstream:
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
        with contextlib.suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.close()

    def close(self) -> None:
        """Say no more, but in good order."""
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_WR)
        self.client.close()


class Faulty(Wire):
    """The server. `base_url` is what the client is given; the link base stays the rehearsal's own.

    With `tls` it speaks TLS. `greets` has each connection first, before a request is read from it.
    """

    patience = None

    def __init__(
        self,
        service: tuple[str, int],
        *faults: Fault,
        then: Fault | None = None,
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
        self._then: Fault = then or passes
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

    def plan(self, *faults: Fault, then: Fault | None = None) -> None:
        """Other faults for what comes next."""
        with self._lock:
            self._faults, self._then = list(faults), then or passes
        self.committed.clear()
        self.released.clear()

    def stop(self) -> None:
        self.ending.set()
        self.released.set()
        super().stop()
        for thread in self._threads.copy():
            thread.join(_TIMEOUT)

    def _talk(self, client: socket.socket) -> None:
        if self._greets is not None:
            self._greets(self, client)
        client = client if self._tls is None else self.secured(self._tls, client)
        rest = bytearray()
        with client:
            while (message := _read_message(client, rest)) is not None:
                received = Received(*message)
                with self._lock:
                    self._received.append(received)
                    fault = self._faults.pop(0) if self._faults else self._then
                fault(Exchange(self, client, received))
                if client.fileno() < 0:
                    return


def _read_message(sock: socket.socket, rest: bytearray) -> tuple[bytes, bytes] | None:
    """One message that has a Content-Length or no body; None where the other side closed before it was whole."""
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


# -- faults -----------------------------------------------------------------------------------


def message(status: int, body: bytes, headers: Mapping[str, str] | None = None, *, length: int | None = None) -> bytes:
    """An answer as bytes. `length` lies about the body's."""
    lines = [f"HTTP/1.1 {status} {_REASON}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if status != 204:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def passes(exchange: Exchange) -> None:
    """No fault."""
    answer = exchange.forward()
    exchange.send(answer.head + answer.body)


def reset_before(exchange: Exchange) -> None:
    """The service never hears of it."""
    exchange.reset()


def reset_after(exchange: Exchange) -> None:
    """The service has carried it out; its answer is lost."""
    exchange.forward()
    exchange.reset()


def closes(exchange: Exchange) -> None:
    """The connection ends without an answer."""
    exchange.close()


def closes_after(exchange: Exchange) -> None:
    exchange.forward()
    exchange.close()


def half_body(exchange: Exchange) -> None:
    """More was promised than is sent."""
    answer = exchange.forward()
    exchange.send(answer.head + answer.body[: len(answer.body) // 2])
    exchange.close()


def half_head(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.send(answer.head[: len(answer.head) // 2])
    exchange.close()


def holds(exchange: Exchange) -> None:
    """Carried out; the answer waits until it is released."""
    answer = exchange.forward()
    exchange.server.committed.set()
    exchange.server.released.wait(_TIMEOUT)
    exchange.send(answer.head + answer.body)


def holds_before(exchange: Exchange) -> None:
    """Arrived, and goes no further until it is released; then the connection ends."""
    exchange.server.committed.set()
    exchange.server.released.wait(_TIMEOUT)
    exchange.reset()


def unauthorized(exchange: Exchange) -> None:
    """The gateway does not take the credential: final, and no proof that an earlier request was not carried out."""
    exchange.send(message(401, b'{"message":"Unauthorized"}', {"Content-Type": "application/json"}))


def tunnels(to: tuple[str, int]) -> Fault:
    """What a proxy does with CONNECT, wherever it was to lead."""

    def fault(exchange: Exchange) -> None:
        with socket.create_connection(to, timeout=_TIMEOUT) as upstream:
            exchange.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pipe, args=(upstream, exchange.client), daemon=True)
            back.start()
            _pipe(exchange.client, upstream)
            back.join(_TIMEOUT)
        exchange.client.close()

    return fault


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    for side, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
        with contextlib.suppress(OSError):
            side.shutdown(how)


def hangs_up(_server: Faulty, client: socket.socket) -> None:
    """A greeting: RST as soon as the first byte is there, which then has been sent for certain."""
    client.settimeout(_TIMEOUT)
    client.recv(1, socket.MSG_PEEK)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def never_reads(server: Faulty, _client: socket.socket) -> None:
    """A greeting: the connection is there, and nobody takes what comes over it."""
    server.ending.wait(_TIMEOUT)


def drips(server: Faulty, client: socket.socket) -> None:
    """A greeting: something that looks like the beginning of a TLS answer, byte by byte, without an end."""
    for byte in b"\x16\x03\x03\x40\x00\x02\x00\x3f\xf0" + bytes(DROPS):
        try:
            client.sendall(bytes([byte]))
        except OSError:
            return
        if server.ending.wait(DRIP):
            return


def says(
    status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None, *, commits: bool = False
) -> Fault:
    """Another answer than the service's; `commits` has the service carry it out all the same."""
    content = body.encode() if isinstance(body, str) else body

    def fault(exchange: Exchange) -> None:
        if commits:
            exchange.forward()
        exchange.send(message(status, content, headers))

    return fault


def echoes(status: int, form: str) -> Fault:
    """A service, or a proxy, that repeats the Authorization header in its answer: where `form` has HEADER or ESCAPED.

    Status 0: `form` is all that is sent, and no HTTP.
    """

    def fault(exchange: Exchange) -> None:
        sent = exchange.received.header("authorization") or ""
        escaped = "".join(f"\\u{ord(sign):04x}" for sign in sent)
        body = form.replace("HEADER", sent).replace("ESCAPED", escaped).encode()
        exchange.send(message(status, body) if status else body)
        if not status:
            exchange.close()

    return fault


def envelope(
    status: int,
    code: int,
    headers: Mapping[str, str] | None = None,
    *,
    commits: bool = False,
    data: Mapping[str, str] | None = None,
) -> Fault:
    """A refusal in the service's own form."""
    members: dict[str, Any] = {"success": False, "message": "as the fault wants it", "error_code": code}
    if data is not None:
        members["additional_data"] = dict(data)
    return says(status, json.dumps(members), {"Content-Type": "application/json", **(headers or {})}, commits=commits)


def rewrites(**members: object) -> Fault:
    """The service's answer with some members changed; `...` leaves one out."""

    def fault(exchange: Exchange) -> None:
        answer = exchange.forward()
        changed = {**json.loads(answer.body), **members}
        body = json.dumps({name: value for name, value in changed.items() if value is not ...}).encode()
        exchange.send(message(answer.status, body, {"Content-Type": "application/json"}))

    return fault
