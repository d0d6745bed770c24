"""What a server does with callers who are slow, many or ambiguous, byte by byte."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from cli.server.odd_requests import CHUNKS, ODD
from sealpipe_service import app, connections, worker
from sealpipe_service.app import PROBES
from sealpipe_service.connections import (
    LEAST_BYTES,
    MOST_OF_ADDRESS,
    WINDOW_SECONDS,
    Crowd,
    Door,
    is_plain,
)
from sealpipe_service.responses import Response
from support.own_service import wait_for
from support.server_thread import ServerThread, serve_in_thread
from support.terminal import PATIENCE

LONG = WINDOW_SECONDS + 1
MADE_UP = f"Authorization: Bearer svc_sk_live_{'x' * 16}.{'y' * 43}"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serve_in_thread() as running:
        yield running


def head(server: ServerThread, target: str = "POST /links/shares/none/open", *more: str) -> bytes:
    lines = [f"{target} HTTP/1.1", f"Host: {server.host}", *more]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def get(server: ServerThread, *more: str) -> bytes:
    return head(server, "GET /healthz", *more)


def read_answer(caller: socket.socket) -> bytes:
    """Read one answer, to the end of its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += caller.recv(1) or pytest.fail(f"closed after {received!r}")
    (length,) = (
        int(line.partition(b":")[2])
        for line in received.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while length:
        part = caller.recv(length)
        received += part
        length -= len(part)
    return received


def read_to_end(caller: socket.socket) -> bytes:
    """Read until the other side closes, with or without a word."""
    received = b""
    try:
        while part := caller.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def is_open(caller: socket.socket) -> bool:
    caller.settimeout(0.05)
    try:
        return caller.recv(1, socket.MSG_PEEK) != b""
    except ConnectionResetError:
        return False
    except TimeoutError:
        return True


def announce(server: ServerThread, length: int) -> bytes:
    return head(server, "POST /links/shares/none/open", f"Content-Length: {length}")


# -- slow callers


@pytest.mark.parametrize(
    "sent",
    [
        lambda _: b"",
        lambda _: b"G",
        lambda server: get(server)[:-2],
        lambda server: announce(server, 1000),
        lambda server: announce(server, 1000) + b"{",
        lambda server: head(server, "POST /links/shares/none/open", "Transfer-Encoding: chunked"),
    ],
    ids=["nothing", "a byte", "half a head", "no body", "half a body", "no chunk"],
)
def test_who_does_not_go_on_is_cut(
    server: ServerThread, sent: Callable[[ServerThread], bytes]
) -> None:
    with server.connect() as caller:
        caller.sendall(sent(server))
        server.look_after(0)
        server.look_after(WINDOW_SECONDS - 1)
        assert is_open(caller)
        server.look_after(LONG)
        assert not is_open(caller)


def test_a_head_that_drips_is_cut_after_a_request_too(server: ServerThread) -> None:
    with server.connect() as caller:
        caller.sendall(get(server))
        read_answer(caller)
        server.look_after(0)
        server.look_after(LONG)
        assert is_open(caller), "between two requests a connection may be idle for longer"
        for byte in b"GET ":
            caller.sendall(bytes([byte]))
            server.look_after(LONG / 4)
        server.look_after(LONG / 4)
        assert not is_open(caller)


def test_a_body_needs_so_many_bytes_in_each_window(server: ServerThread) -> None:
    with server.connect() as caller:
        caller.sendall(announce(server, 4 * LEAST_BYTES))
        server.look_after(0)
        for _ in range(3):
            caller.sendall(b" " * LEAST_BYTES)
            server.look_after(LONG)
        assert is_open(caller)
        caller.sendall(b" " * (LEAST_BYTES - 1))
        server.look_after(LONG)
        assert not is_open(caller)


def test_whoever_sends_what_is_refused_is_cut_too(server: ServerThread) -> None:
    with server.connect() as caller:
        caller.sendall(announce(server, 10**8))
        assert read_answer(caller).startswith(b"HTTP/1.1 413 ")
        server.look_after(0)
        server.look_after(LONG)
        assert not is_open(caller)


def test_a_caller_who_does_not_read_the_answer_is_cut(
    server: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 16 * 1024 * 1024  # more than the system takes in for a caller
    monkeypatch.setitem(PROBES, ("long",), lambda *_: Response(200, b" " * size))
    request = head(server, "GET /long")
    with socket.socket() as slow, server.connect() as patient:
        # What its system takes meanwhile is less than the least that a caller has to take.
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LEAST_BYTES // 4)
        slow.settimeout(PATIENCE)
        slow.connect(server.address)
        for caller in (slow, patient):
            caller.sendall(request)
            assert caller.recv(1, socket.MSG_PEEK)  # the answer is on its way
        server.look_after(0)
        assert patient.makefile("rb").read(4 * 1024 * 1024)
        server.look_after(LONG)
        assert is_open(patient)
        assert len(read_to_end(slow)) < size


# -- answers that wait for no body


@pytest.mark.parametrize(
    ("target", "more", "status"),
    [
        ("POST /v1/shares", (), 401),
        ("POST /v1/shares", ("Authorization: Bearer nonsense",), 403),
        ("POST /v1/shares", (MADE_UP,), 403),
        ("POST /links/shares/none/open", (), 413),
        ("POST /links/requests/none/submit", (), 413),
        ("POST /nothing", (), 413),
        ("GET /healthz", (), 413),
    ],
)
@pytest.mark.parametrize("length", ["Content-Length: 99999999", "Transfer-Encoding: chunked"])
def test_strangers_are_answered_before_what_is_long(
    server: ServerThread, target: str, more: tuple[str, ...], status: int, length: str
) -> None:
    with server.connect() as caller:
        caller.sendall(head(server, target, *more, length))
        if "chunked" in length:
            caller.sendall(b"ffffff\r\n" + b" " * 0x20000)
        answer = read_answer(caller)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"\r\nconnection: close\r\n" in answer
        caller.sendall(b" " * LEAST_BYTES)  # whoever sends on is not reset
        server.look_after(0)
        assert is_open(caller)


def test_who_shows_no_credential_is_answered_before_any_body(server: ServerThread) -> None:
    with server.connect() as caller:
        caller.sendall(head(server, "POST /v1/shares", "Content-Length: 9"))
        assert read_answer(caller).startswith(b"HTTP/1.1 401 ")


def test_nobody_is_asked_for_what_is_refused(server: ServerThread) -> None:
    with server.connect() as caller:
        more = ("Expect: 100-continue", "Content-Length: 99999999")
        caller.sendall(head(server, "POST /v1/shares", *more))
        assert read_answer(caller).startswith(b"HTTP/1.1 401 ")


def test_long_bodies_have_a_part_of_a_processs_memory(
    server: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_HELD", 2 * app.SHORT_BODY)
    credential, length = f"Authorization: Bearer {server.key()}", 2 * app.SHORT_BODY

    def send_long(caller: socket.socket) -> None:
        more = (credential, f"Content-Length: {length}")
        caller.sendall(head(server, "POST /v1/shares", *more) + b" " * (length - 1))

    def ask_with_long() -> bytes:
        with server.connect() as caller:
            send_long(caller)
            caller.sendall(b" ")
            return read_answer(caller)[9:12]

    assert ask_with_long() == b"400"
    with server.connect() as slow:
        send_long(slow)
        wait_for(lambda: ask_with_long() == b"503")
        with server.connect() as short:
            short.sendall(announce(server, 2) + b"{}")
            assert read_answer(short).startswith(b"HTTP/1.1 404 ")
    wait_for(lambda: ask_with_long() == b"400")


def test_a_client_may_send_20_mib_and_no_more(server: ServerThread) -> None:
    credential = f"Authorization: Bearer {server.key()}"
    for length, status in ((worker.MAX_BODY + 1, 413), (worker.MAX_BODY, 400)):
        with server.connect() as caller:
            more = (credential, "Idempotency-Key: k", "Content-Type: application/json")
            caller.sendall(head(server, "POST /v1/shares", *more, f"Content-Length: {length}"))
            if status == 400:
                caller.sendall(b" " * length)
            assert read_answer(caller).startswith(b"HTTP/1.1 %d " % status)


# -- too many


def test_idle_connections_make_room_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    with serve_in_thread() as server, ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            caller = stack.enter_context(server.connect())
            caller.sendall(sent)
            server.look_after(0)
            return caller

        busy, idle, served = connect(announce(server, 9)), connect(b""), connect(get(server))
        read_answer(served)
        late = connect(announce(server, 9))
        assert [is_open(each) for each in (busy, idle, served, late)] == [True, False, True, True]
        later = connect(announce(server, 9))
        assert [is_open(each) for each in (busy, served, late, later)] == [True, False, True, True]
        assert not is_open(connect(b""))


class Idle:
    """A connection that is idle, as far as a crowd knows."""

    def __init__(self) -> None:
        self.is_cut = False
        self.transport = self

    def is_idle(self) -> bool:
        return True

    def abort(self) -> None:
        self.is_cut = True


def test_one_stranger_has_a_part_of_them_and_this_machine_and_proxies_have_all() -> None:
    crowd = Crowd([ipaddress.ip_network("10.0.0.0/8")])
    for peer in ("192.0.2.7", "2001:db8::", "127.0.0.1", "10.0.0.1", None):
        callers = [Idle() for _ in range(MOST_OF_ADDRESS + 1)]
        for number, caller in enumerate(callers):
            is_site = peer is not None and peer.endswith("::")
            who = f"{peer}{number + 1:x}" if is_site else peer
            assert crowd.enter(caller, who)  # type: ignore[arg-type]
        expected = 1 if peer in ("192.0.2.7", "2001:db8::") else 0
        assert [caller.is_cut for caller in callers].count(True) == expected, peer
        assert callers[0].is_cut == bool(expected)


def test_what_has_not_begun_a_handshake_is_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", 1)
    monkeypatch.setattr(connections, "name_stranger", lambda *_: "one of them")
    with ExitStack() as opened:
        door = opened.enter_context(Door(socket.create_server(("127.0.0.1", 0)), []))

        def connect() -> socket.socket:
            return opened.enter_context(socket.create_connection(door.getsockname(), PATIENCE))

        connect()
        opened.enter_context(door.accept()[0])
        connect()
        second = door.accept()[0]
        third = connect()
        with pytest.raises(ConnectionAbortedError):
            door.accept()
        assert third.recv(1) == b""
        second.close()
        connect()
        opened.enter_context(door.accept()[0])


# -- what is no request


@pytest.mark.parametrize("name", ODD)
def test_what_can_be_read_in_two_ways_is_refused_with_all_after_it(
    server: ServerThread, name: str
) -> None:
    odd = ODD[name].format(host=server.host).replace("|", "\r\n").encode() + b"\r\n\r\n"
    with server.connect() as caller:
        caller.sendall(odd + b"0\r\n\r\n" + get(server))
        answers = read_to_end(caller)
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1


def test_a_value_that_names_a_version_is_a_value() -> None:
    """Nor is the rest of the head searched behind each of them."""
    start = b"POST /nothing HTTP/1.1\r\n"
    assert is_plain(start + b"Via: HTTP/1.0\r\nX-One: a\r\nTransfer-Encoding: chunked\r\n\r\n")


def test_a_head_without_headers_is_one(server: ServerThread) -> None:
    """haproxy's `option httpchk` sends it."""
    with server.connect() as caller:
        caller.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert read_to_end(caller).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\n\r\n"])
def test_a_line_that_ends_otherwise_is_no_line(server: ServerThread, end: bytes) -> None:
    with server.connect() as caller:
        caller.sendall(get(server, "X-One: a").replace(b"a\r\n", b"a" + end) + get(server))
        answers = read_to_end(caller)
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("chunks", CHUNKS)
def test_a_body_in_bad_chunks_is_refused_with_all_after_it(
    server: ServerThread, chunks: bytes
) -> None:
    with server.connect() as caller:
        start = head(server, "POST /nothing", "Transfer-Encoding: chunked")
        caller.sendall(start + chunks + get(server, "Connection: close"))
        answers = read_to_end(caller)
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1


def test_plain_requests_share_a_connection(server: ServerThread) -> None:
    chunked = head(server, "POST /nothing", "Transfer-Encoding: chunked")
    with server.connect() as caller:
        caller.sendall(
            get(server) + chunked + b"2\r\n{}\r\n0\r\n\r\n" + get(server, "Connection: close")
        )
        answers = read_to_end(caller)
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert answers.count(b"HTTP/1.1 404 ") == 1
