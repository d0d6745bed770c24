"""The connections to Vault, over real sockets: what may come back, and what may not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPException, RemoteDisconnected

import pytest
import trustme

from sealpipe.api import Credential
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import AccessDeniedError
from sealpipe.http.sockets import bound_socket
from sealpipe_plugins.vault.connections import BODY_LIMIT, BUFFER_SIZE, HEAD_LIMIT, Connection
from sealpipe_rehearsal.control_client import mint
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
        False,
    ),
    "announced": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    "without a reason": (b"HTTP/1.1 404 \r\nContent-Length: 1\r\n\r\na", 404, b"a", True),
    "the last": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", 200, b"a", False),
    "a folded header": (b"HTTP/1.1 200 OK\r\nA: 1\r\n  more\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    "old": (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a", False),
    "old, and kept": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=9\r\nContent-Length: 1\r\n\r\na",
        200,
        b"a",
        False,
    ),
    "old, and in chunks": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        200,
        b"a",
        False,
    ),
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
        assert server.connections == 1


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
    "announced for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_LIMIT // 25 + 1),
    "a version that is none": b"HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a number with a sign": b"HTTP/1.1 +200 OK\r\nContent-Length: 0\r\n\r\n",
    "announced by what is none": b"HTTP/1.9 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "a CR alone": b"HTTP/1.1 200 OK\r\nA: 1\rContent-Length: 0\r\n\r\n",
    "a CR too many": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\r\n\r\n",
    "a NUL": b"HTTP/1.1 200 OK\r\nA: 1\0\r\nContent-Length: 0\r\n\r\n",
    "headers cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
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


CHUNKS = {
    "hexadecimal twice": b"0x1\r\na\r\n0\r\n\r\n",
    "a sign": b"+0_1\r\na\r\n0\r\n\r\n",
    "less than nothing": b"1\r\na\r\n-0\r\n\r\n",
    "junk behind a chunk": b"1\r\naXX0\r\n\r\n",
}


@pytest.mark.parametrize("name", CHUNKS)
def test_a_line_with_odd_chunks_is_not_used_again(says: Says, name: str) -> None:
    line, server = says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS[name])
    for number in (1, 2):
        line.exchange("GET", "/", {"Host": "vault"}, None)
        assert (line.is_open, server.connections) == (False, number)


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_an_unrequested_response_is_not_used_for_the_next_call() -> None:
    asks, pushed = threading.Event(), threading.Event()

    def pushes(exchange: Exchange) -> None:
        exchange.send(answer(b"a"))
        asks.wait(10)
        exchange.send(answer(b"of nobody"))
        pushed.set()

    with Faulty(("127.0.0.1", 9), pushes, then=lambda exchange: exchange.send(answer(b"b"))) as server:
        line = Connection("vault", lambda: socket.create_connection(("127.0.0.1", server.port), 5))
        assert line.exchange("GET", "/a", {"Host": "vault"}, None).body == b"a"
        asks.set()
        assert pushed.wait(10)
        assert line.exchange("GET", "/b", {"Host": "vault"}, None).body == b"b"
        assert line.exchange("GET", "/c", {"Host": "vault"}, None).body == b"b"
        line.close()
        assert [each.target for each in server.received()] == ["/a", "/b", "/c"]
        assert server.connections == 2


def test_nor_is_one_that_tls_holds_already() -> None:
    """Both are in one record, and the first ends where our buffer does: no socket is readable for the second."""
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    authority.configure_trust(ours)
    first = answer(bytes(BUFFER_SIZE - len(answer(bytes(1000))) + 1000))
    assert len(first) == BUFFER_SIZE

    def pushes(exchange: Exchange) -> None:
        exchange.send(first + answer(b"of nobody"))

    def connect() -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", server.port), 5)
        return ours.wrap_socket(plain, server_hostname="127.0.0.1")

    with Faulty(("127.0.0.1", 9), pushes, then=lambda exchange: exchange.send(answer(b"b")), tls=theirs) as server:
        line = Connection("vault", connect)
        assert first.endswith(line.exchange("GET", "/a", {"Host": "vault"}, None).body)
        assert isinstance(line.sock, ssl.SSLSocket)
        assert line.sock.pending() > 0
        assert line.exchange("GET", "/b", {"Host": "vault"}, None).body == b"b"
        line.close()


def test_a_line_that_was_hung_up_is_opened_anew_for_a_write() -> None:
    def hangs_up(exchange: Exchange) -> None:
        exchange.send(answer(b"a"))
        exchange.close()

    with Faulty(("127.0.0.1", 9), hangs_up, then=lambda exchange: exchange.send(answer(b"b"))) as server:
        line = Connection("vault", lambda: socket.create_connection(("127.0.0.1", server.port), 5))
        line.exchange("GET", "/a", {"Host": "vault"}, None)
        assert line.sock.recv(1, socket.MSG_PEEK) == b"", "the end has come"
        assert line.exchange("POST", "/b", {"Host": "vault"}, b"{}").body == b"b"
        line.close()


def test_no_byte_leaves_where_the_body_holds_the_credential() -> None:
    """Neither does the head, which holds the token."""
    key = mint().credential.reveal()
    with socket.create_server(("127.0.0.1", 0)) as listens:

        def connect() -> socket.socket:
            line = bound_socket(socket.create_connection(listens.getsockname(), 5))
            line.gate = CustodyGate(Credential.parse(key))
            return line

        line = Connection("vault", connect)
        with pytest.raises(AccessDeniedError):
            line.exchange("POST", "/v1/x", {"Host": "vault", "X-Vault-Token": "t"}, b'{"a":"%s"}' % key.encode())
        assert not line.is_open
        theirs, _ = listens.accept()
        with theirs:
            theirs.settimeout(5)
            assert theirs.recv(1) == b"", "nothing, and then the end"
