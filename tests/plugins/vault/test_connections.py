"""The connections to Vault, over real sockets: what may come back, and what may not."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPException, RemoteDisconnected

import pytest

from sealpipe_plugins.vault.connections import BODY_LIMIT, Connection
from support.faulty import Exchange, Faulty

Says = Callable[..., tuple[Connection, Faulty]]


@pytest.fixture
def says() -> Iterator[Says]:
    """A connection to a server that answers with these bytes, and hangs up where it is told to."""
    with ExitStack() as stack:

        def start(data: bytes, *, ends: bool = False) -> tuple[Connection, Faulty]:
            def fault(exchange: Exchange) -> None:
                exchange.send(data)
                if ends:
                    exchange.close()

            server = stack.enter_context(Faulty(("127.0.0.1", 9), then=fault))
            line = Connection("vault", lambda: socket.create_connection(("127.0.0.1", server.port), 5))
            stack.callback(line.close)
            return line, server

        yield start


GOOD = {
    "measured": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-A: 1\r\nx-a: 2\r\n\r\nabc", 200, b"abc", True),
    "empty": (b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", 200, b"", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nX-Trailer: 1\r\n\r\n",
        200,
        b"abc",
        True,
    ),
    "announced": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    "without a reason": (b"HTTP/1.1 404 \r\nContent-Length: 1\r\n\r\na", 404, b"a", True),
    "the last": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", 200, b"a", False),
    "a folded header": (b"HTTP/1.1 200 OK\r\nA: 1\r\n  more\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a", False),
}


@pytest.mark.parametrize("name", GOOD)
def test_an_answer_is_taken_whole_and_the_line_used_again(says: Says, name: str) -> None:
    data, status, body, keeps = GOOD[name]
    line, server = says(data)
    answer = line.exchange("GET", "/v1/x", {"Host": "vault"}, None)
    assert (answer.status, answer.body, line.is_open) == (status, body, keeps)
    if keeps:
        again = line.exchange("POST", "/v1/y", {"Host": "vault"}, b"{}")
        assert (again.status, again.body) == (status, body)
        assert [(each.method, each.target, each.body) for each in server.received()] == [
            ("GET", "/v1/x", b""),
            ("POST", "/v1/y", b"{}"),
        ]
        assert server.connections() == 1


def test_the_names_of_headers_are_found_whatever_their_case(says: Says) -> None:
    headers = says(GOOD["measured"][0])[0].exchange("GET", "/", {"Host": "vault"}, None).headers
    assert (headers.get("x-a"), headers.get("X-A"), headers.get("content-length")) == ("1", "1", "3")


def test_a_body_without_a_length_ends_with_the_line(says: Says) -> None:
    line, _ = says(b"HTTP/1.1 200 OK\r\n\r\nabc", ends=True)
    assert line.exchange("GET", "/", {"Host": "vault"}, None).body == b"abc"
    assert not line.is_open


BAD = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\n\r\n",
    "a number that is none": b"HTTP/1.1 20 OK\r\n\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a chunk without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "two forms": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "packed": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"A: 1\r\n" * 1000 + b"\r\n",
    "a line without end": b"HTTP/1.1 200 OK\r\nA: " + b"a" * 100_000,
    "too much": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (BODY_LIMIT + 2),
    "a chunk below nothing": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabcdefgh",
    "early hints": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    "too large a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_is_none_is_an_error_and_ends_the_line(says: Says, name: str) -> None:
    line, _ = says(BAD[name], ends=True)
    with pytest.raises(HTTPException) as caught:
        line.exchange("GET", "/", {"Host": "vault"}, None)
    assert isinstance(caught.value, RemoteDisconnected) == (name == "nothing")
    assert not line.is_open


@pytest.mark.parametrize("value", ["a\r\nX-Other: 1", "a\nb", "\u00fcml\u00e4ut", "a\x00b"])
def test_a_header_that_would_break_out_is_never_sent(says: Says, value: str) -> None:
    line, server = says(GOOD["empty"][0])
    with pytest.raises(ValueError, match="cannot have"):
        line.exchange("GET", "/", {"Host": "vault", "X-Vault-Namespace": value}, None)
    assert server.received() == [], "nothing was sent"
    assert line.exchange("GET", "/", {"Host": "vault"}, None).status == 200
    assert len(server.received()) == 1
