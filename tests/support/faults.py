"""What goes wrong with one request at a `Faulty`, or with a connection before any request: its
greetings.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from support.faulty import TIMEOUT, Exchange, Fault, Faulty, cut, passes

JSON = {"Content-Type": "application/json"}
_DRIP = 0.2
_DROPS = 100
_CHUNKS = 1_000
"""In all far more than any deadline here lasts or any limit allows; but who takes them all fails,
and does not hang.
"""
_REASON = "As The Fault Wants It"


def message(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, *, length: int | None = None
) -> bytes:
    """An answer as bytes. `length` lies about the body's."""
    lines = [f"HTTP/1.1 {status} {_REASON}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if status != 204:
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


# -- no answer, or not all of it --------------------------------------------------------------


def reset_before(exchange: Exchange) -> None:
    """The service never hears of it."""
    exchange.reset()


def reset_after(exchange: Exchange) -> None:
    """The service has carried it out; its answer is lost."""
    exchange.forward()
    exchange.reset()


def refuses_on(exchange: Exchange) -> None:
    """The same, and from then on nobody listens."""
    exchange.server.refuse()
    reset_after(exchange)


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
    exchange.server.released.wait(TIMEOUT)
    exchange.send(answer.head + answer.body)


def holds_before(exchange: Exchange) -> None:
    """Arrived, and goes no further until it is released; then the connection ends."""
    exchange.server.committed.set()
    exchange.server.released.wait(TIMEOUT)
    exchange.reset()


# -- another answer ---------------------------------------------------------------------------


def raw(data: bytes) -> Fault:
    """Bytes that need not be HTTP, then the end."""

    def fault(exchange: Exchange) -> None:
        exchange.send(data)
        exchange.close()

    return fault


def says(
    status: int,
    body: bytes | str = b"",
    headers: Mapping[str, str] | None = None,
    *,
    commits: bool = False,
) -> Fault:
    """Another answer than the service's; `commits` has the service carry it out all the same."""

    def fault(exchange: Exchange) -> None:
        if commits:
            exchange.forward()
        exchange.send(message(status, _encoded(body), headers))

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
    members: dict[str, Any] = {
        "success": False,
        "message": "as the fault wants it",
        "error_code": code,
    }
    if data is not None:
        members["additional_data"] = dict(data)
    return says(status, json.dumps(members), {**JSON, **(headers or {})}, commits=commits)


unauthorized = says(401, '{"message":"Unauthorized"}', JSON)
"""The gateway does not take the credential: final, and no proof that an earlier request was not
carried out.
"""


def echoes(status: int, form: str) -> Fault:
    """A service, or a proxy, that repeats the Authorization header in its answer: where `form` has
    HEADER or ESCAPED.

    Status 0: `form` is all that is sent, and no HTTP.
    """

    def fault(exchange: Exchange) -> None:
        sent = exchange.received.header("authorization") or ""
        escaped = "".join(f"\\u{ord(sign):04x}" for sign in sent)
        body = form.replace("HEADER", sent).replace("ESCAPED", escaped).encode()
        (says(status, body) if status else raw(body))(exchange)

    return fault


# -- the service's answer, spoilt -------------------------------------------------------------


def rewrites(**members: object) -> Fault:
    """The service's answer with some members changed; `...` leaves one out."""

    def change(body: bytes) -> bytes:
        changed = {**json.loads(body), **members}
        return json.dumps(
            {name: value for name, value in changed.items() if value is not ...}
        ).encode()

    return _spoils(change)


def replaces(body: bytes | str) -> Fault:
    """The service's status with another body."""
    return _spoils(lambda _: _encoded(body))


def _spoils(change: Callable[[bytes], bytes], headers: Mapping[str, str] = JSON) -> Fault:
    def fault(exchange: Exchange) -> None:
        answer = exchange.forward()
        exchange.send(message(answer.status, change(answer.body), headers))

    return fault


def _encoded(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body


gzipped = _spoils(gzip.compress, {**JSON, "Content-Encoding": "gzip"})


def interim(exchange: Exchange) -> None:
    """102 and 103 before the real answer."""
    exchange.send(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    passes(exchange)


# -- an answer that never ends ----------------------------------------------------------------


def _goes_on(start: bytes, piece: bytes, times: int, every: float = 0.0) -> Fault:
    """Carried out; the answer begins so, and then the same piece comes again and again."""

    def fault(exchange: Exchange) -> None:
        exchange.forward()
        exchange.send(start)
        _send_each(exchange.server, exchange.client, [piece] * times, every)
        exchange.close()

    return fault


def _send_each(
    server: Faulty, client: socket.socket, pieces: Iterable[bytes], every: float
) -> None:
    """Until the client has gone, or the server ends."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            client.sendall(piece)
            if server.ending.wait(every):
                return


drips_head = _goes_on(b"HTTP/1.1 201 Created\r\nX-Drip: ", b"d", _DROPS, _DRIP)
drips_body = _goes_on(message(201, b'{"short_code":"', JSON, length=100_000), b"d", _DROPS, _DRIP)
endless = _goes_on(
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"10000\r\n" + b" " * 0x10000 + b"\r\n",
    _CHUNKS,
)


# -- connections ------------------------------------------------------------------------------


def tunnels(to: tuple[str, int]) -> Fault:
    """What a proxy does with CONNECT, wherever it was to lead."""

    def fault(exchange: Exchange) -> None:
        with socket.create_connection(to, timeout=TIMEOUT) as upstream:
            exchange.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pipe, args=(upstream, exchange.client), daemon=True)
            back.start()
            _pipe(exchange.client, upstream)
            back.join(TIMEOUT)
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
    client.settimeout(TIMEOUT)
    client.recv(1, socket.MSG_PEEK)
    cut(client)


def never_reads(server: Faulty, _client: socket.socket) -> None:
    """A greeting: the connection is there, and nobody takes what comes over it."""
    server.ending.wait(TIMEOUT)


def drips_tls(server: Faulty, client: socket.socket) -> None:
    """A greeting: something that looks like the beginning of a TLS answer, byte by byte, without an
    end.
    """
    start = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xf0"
    _send_each(server, client, (bytes([byte]) for byte in start + bytes(_DROPS)), _DRIP)
