"""What is long is kept in memory only from those who were admitted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sealpipe_rehearsal.people import Recipient, Submitter
from support.own_service import OwnService, list_workers, make_own_service

MIB = 1024 * 1024
SENT, MANY = 4 * MIB, 8
LONG = "x" * (MIB // 2)
MADE_UP = f"authorization: Bearer svc_sk_live_{'x' * 16}.{'y' * 43}\r\n"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OwnService, int]]:
    made = make_own_service(tmp_path_factory.mktemp("service") / "own")
    with made.running() as process:
        (worker,) = list_workers(process)
        yield made, worker


def memory_of(process: int) -> int:
    told = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in told.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [
        ("/links/shares/none/open", "", 413),
        ("/links/requests/none/submit", "", 413),
        ("/nothing", "", 413),
        ("/v1/shares", "", 401),
        ("/v1/shares", MADE_UP, 403),
    ],
)
def test_strangers_fill_no_memory_and_are_answered(
    own: tuple[OwnService, int], path: str, header: str, status: int
) -> None:
    service, worker = own
    host = service.public_url.partition("://")[2]
    name, _, port = host.partition(":")
    head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\n{header}content-length: {SENT + 1}\r\n\r\n"
    with ExitStack() as stack:
        callers = [
            stack.enter_context(socket.create_connection((name, int(port)), 30))
            for _ in range(MANY)
        ]
        before = memory_of(worker)
        for caller in callers:
            caller.sendall(head.encode() + b" " * SENT)  # all but the last byte
        assert memory_of(worker) - before < 2 * SENT
        for caller in callers:
            caller.sendall(b" ")
            answer = caller.makefile("rb").readline()
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_client_and_a_submitter_may_send_what_is_long(
    own: tuple[OwnService, int], tmp_path: Path
) -> None:
    service, _ = own
    client = service.client(tmp_path / "client")
    (client.here / "long.txt").write_text(LONG)
    link = client.sealpipe("share", "-f", "P=file:long.txt").out.strip()
    assert Recipient().open_link(link)[0].value == LONG
    asked = client.sealpipe("request", "-a", "note=Note:text", "--receipt", "r.json").out.strip()
    Submitter().submit(asked, {"Note": LONG})
    assert LONG in client.sealpipe("collect", "r.json").out
