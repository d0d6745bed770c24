"""How a server stops: it says so, answers what is open, and loses no call of those who come by a
proxy, while another one serves.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from secrets import token_hex

import httpx

from sealpipe_service import supervising, worker
from sealpipe_service.meters import Board
from sealpipe_service.serving import bind
from support.clusters import run_cluster
from support.own_service import OwnRunning, OwnService, list_workers, make_own_service, wait_for
from support.parts import program
from support.ports import free_port
from support.terminal import PATIENCE

HALF = (
    "POST /v1/shares HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {credential}\r\n"
    "Connection: close\r\nContent-Length: 10\r\n\r\n12345"
)
BODY = {"encryption_type": "e2ee-aes256-gcm", "data": "A" * 40, "access_token": "A" * 43}


def find_credential(own: OwnService) -> str:
    """Return what may be sent of the first key."""
    return own.exports["SEALPIPE_API_KEY"].rpartition(".")[0]


@contextmanager
def half_a_call(own: OwnService) -> Iterator[socket.socket]:
    """A call that is on its way: the other half of its body is still to come."""
    host, _, port = own.public_url.partition("://")[2].partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        credential = find_credential(own)
        half = HALF.format(host=f"{host}:{port}", credential=credential)
        connection.sendall(half.encode())
        yield connection


def is_refused(own: OwnService) -> bool:
    try:
        httpx.get(f"{own.public_url}/healthz", trust_env=False)
    except httpx.ConnectError:
        return True
    return False


def readiness(own: OwnService) -> tuple[int, str | None]:
    answer = httpx.get(f"{own.public_url}/readyz", trust_env=False)
    return answer.status_code, answer.headers.get("connection")


def test_it_answers_what_is_open_and_takes_nothing_new(tmp_path: Path) -> None:
    """Each process gets the signal, as at a terminal; that cuts nothing."""
    own = make_own_service(tmp_path)
    process = own.start("--workers", "2")
    with half_a_call(own) as connection:
        assert readiness(own) == (200, None)
        for each in (*list_workers(process), process.pid):
            os.kill(each, signal.SIGINT)
        wait_for(lambda: is_refused(own))
        assert process.poll() is None
        connection.sendall(b"67890")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in said


def test_it_says_first_that_it_stops_and_a_second_signal_cuts(tmp_path: Path) -> None:
    own = make_own_service(tmp_path)
    process = own.start("--shutdown-delay", "1h")
    with half_a_call(own) as connection:
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: readiness(own) == (503, "close"))
        assert httpx.get(f"{own.public_url}/healthz", trust_env=False).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert connection.recv(4096) == b""
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


IMPATIENT = """
import sys
from socket import socket
from sealpipe_service import worker
from sealpipe_service.meters import open_slot
worker.GRACE_SECONDS = 1
listening, control, board = map(int, sys.argv[1:])
sys.exit(worker.work(socket(fileno=listening), socket(fileno=control), open_slot(board, 0)))
"""


def test_a_call_that_takes_longer_than_the_last_seconds_is_cut(tmp_path: Path) -> None:
    """A process as the supervisor starts it, which waits for a second where others wait for 30."""
    assert (worker.GRACE_SECONDS, supervising.END_SECONDS) == (30, 35)
    own = make_own_service(tmp_path)
    settings = supervising.ServerSettings(own.address, own.public_url, "1")
    host, _, port = own.public_url.partition("://")[2].partition(":")
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(Board(1)) as board, bind(host, int(port)) as listening:
        descriptors = [each.fileno() for each in (listening, theirs, board)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", IMPATIENT, *map(str, descriptors)],
            pass_fds=descriptors,
            stderr=subprocess.PIPE,
            text=True,
        )
        ours.sendall(json.dumps(asdict(settings)).encode() + b"\n")
        assert ours.recv(4096) == supervising.READY
        with half_a_call(own) as connection:
            assert readiness(own)[0] == 200
            begun = time.monotonic()
            ours.sendall(supervising.END)
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
            assert time.monotonic() - begun >= 1, "it had its second"
        _, said = process.communicate(timeout=PATIENCE)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert process.returncode == 0
    assert "12345" not in said


# -- two replicas ----------------------------------------------------------------------------------

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout check 10s
  option redispatch
  retries 3
frontend public
  bind 127.0.0.1:{public}
  default_backend replicas
backend replicas
  option httpchk GET /readyz
  default-server check inter 100ms fall 1 rise 1
  server one 127.0.0.1:{one}
  server two 127.0.0.1:{two}
"""


@dataclass
class Load:
    """Creates, one after the other on kept connections, in some threads: a hundred a second in all,
    for as many as two cores can do would only be waited for.
    """

    own: OwnService
    codes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def create(self) -> None:
        headers = {"authorization": f"Bearer {find_credential(self.own)}"}
        with httpx.Client(headers=headers, trust_env=False, timeout=PATIENCE) as client:
            while not self.is_over.wait(0.03):
                try:
                    answer = client.post(
                        f"{self.own.public_url}/v1/shares",
                        json=BODY,
                        headers={"idempotency-key": token_hex(8)},
                    )
                except httpx.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                if answer.status_code != 201:
                    self.failed.append(f"{answer.status_code} {answer.text}")
                    continue
                self.codes.append(answer.json()["short_code"])

    @contextmanager
    def running(self, threads: int) -> Iterator[None]:
        crowd = [threading.Thread(target=self.create) for _ in range(threads)]
        for each in crowd:
            each.start()
        try:
            yield
        finally:
            self.is_over.set()
            for each in crowd:
                each.join(PATIENCE)

    def go_on(self, more: int = 20) -> None:
        """Wait until so many more creates were answered."""
        enough = len(self.codes) + more
        wait_for(lambda: len(self.codes) >= enough or self.failed)


@dataclass
class Replica:
    """A server that is started again and again, and whose log is read meanwhile."""

    own: OwnService
    port: int

    def start(self) -> None:
        self.process = self.own.start("--shutdown-delay", "1s", listen=f"127.0.0.1:{self.port}")
        self.reader = threading.Thread(target=self.process.communicate)
        self.reader.start()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.reader.join(PATIENCE)
        return self.process.wait(PATIENCE)


@contextmanager
def proxied(folder: Path, own: OwnService, ports: Sequence[int]) -> Iterator[None]:
    public = own.public_url.rpartition(":")[2]
    file = folder / "haproxy.cfg"
    file.write_text(HAPROXY.format(public=public, one=ports[0], two=ports[1]))
    with subprocess.Popen([program("haproxy"), "-db", "-f", file]) as proxy:
        try:
            yield
        finally:
            proxy.kill()


def is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def test_two_replicas_restarted_one_after_the_other_lose_no_call(tmp_path: Path) -> None:
    with run_cluster() as cluster:
        own = make_own_service(tmp_path / "service", cluster.address("empty"))
        found = OwnRunning(own)
        found.set_account(requests_per_minute=1_000_000)
        replicas = [Replica(own, free_port()) for _ in range(2)]
        load = Load(own)
        with ExitStack() as running:
            running.callback(found.close)
            for each in replicas:
                each.start()
                running.callback(each.stop, signal.SIGKILL)
            running.enter_context(proxied(tmp_path, own, [each.port for each in replicas]))
            wait_for(lambda: is_up(int(own.public_url.rpartition(":")[2])))
            with load.running(3):
                for each in replicas:
                    load.go_on()
                    assert each.stop() == 0
                    load.go_on()
                    each.start()
                    time.sleep(0.5)  # until the proxy has seen it
                load.go_on()
            rows = found.read("SELECT short_code FROM shares")
        assert load.failed == []
        assert sorted(row["short_code"] for row in rows) == sorted(load.codes)
