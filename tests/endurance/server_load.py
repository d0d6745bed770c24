"""What a service of one's own bears: creates and opens a second, and what each costs in CPU time.

Each figure is compared with a floor, `load_floor.py`: the same Starlette, uvicorn, driver and
durability, and one row a call. Both are asked in turn, some seconds each, so that what else the
machine does meets both; a ratio is the median over the rounds. CPU seconds are those of the
processes that serve and of PostgreSQL, not of the callers, and depend less on other work.

`--stored 1000000` puts so many shares into the database first; `--soak 600` then lets callers
create and open for so many seconds at 70 % of the highest rate, and tells latencies, the slowest
seconds and memory.
Exit code 1: something was answered that should not be.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import resource
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sealpipe_service.database.opening import file_of
from support.own_service import OwnRunning, OwnService, list_workers, make_own_service
from support.parts import Postgres, run_postgres
from support.ports import free_port

FLOOR = Path(__file__).with_name("load_floor.py")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = resource.getpagesize()
OPENED = 100
"""So many shares are opened, again and again."""
KEYS = 50
SLOWEST = 12
"""So many seconds of a soak are told: what comes back regularly shows there."""
Call = Callable[[], bytes]
"""Makes the bytes of a request."""


@dataclass
class Server:
    """Processes that serve: what is asked of them, and what they have used."""

    address: tuple[str, int]
    pids: Sequence[int]
    database: Sequence[int] = ()

    def cpu(self) -> float:
        """Seconds of CPU time so far, those of PostgreSQL's processes too."""
        return sum(map(_cpu, [*self.pids, *self._backends()]))

    def _backends(self) -> Iterator[int]:
        for postmaster in self.database:
            yield postmaster
            yield from _children(postmaster)

    def memory(self) -> float:
        """MB that the serving processes hold."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids) * (
            PAGE / 1e6
        )


def _children(pid: int) -> Sequence[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu(pid: int) -> float:
    """Of a process and of those that it has seen end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0.0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / TICKS


@dataclass
class Asked:
    """What callers were answered: after how many seconds since it was due, of that since it was
    sent, and when that was.
    """

    seconds: list[float] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    wrong: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """How many calls a second, and CPU milliseconds for each."""

    rate: float
    cpu: float


class Callers:
    """Threads that call one server over connections that they keep."""

    def __init__(self, address: tuple[str, int], call: Call, count: int, pause: float = 0) -> None:
        self._address, self._call, self._pause = address, call, pause
        self.asked = Asked()
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(each / count,)) for each in range(count)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in self._threads:
                thread.join()

    def _run(self, offset: float) -> None:
        with socket.create_connection(self._address, 60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            due = time.monotonic() + offset * self._pause
            while not self._is_over.is_set():
                if self._pause and self._is_over.wait(max(0.0, due - time.monotonic())):
                    return
                # Since when it was due: who waits behind a slow call counts, too.
                began = due if self._pause else time.monotonic()
                due += self._pause
                request, sent = self._call(), time.monotonic()
                connection.sendall(request)
                status, answer = _receive(connection)
                ended = time.monotonic()
                self.asked.seconds.append(ended - began)
                self.asked.served.append(ended - sent)
                self.asked.at.append(sent)
                if status not in (b"200", b"201"):
                    self.asked.wrong.append(status + b" " + answer[:200])


def _receive(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    (length,) = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += _more(connection)
    return head.split(b" ", 2)[1], body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the service closed a connection")
    return data


def ask(address: tuple[str, int], request: bytes) -> bytes:
    """Make one call."""
    with socket.create_connection(address, 60) as connection:
        connection.sendall(request)
        status, answer = _receive(connection)
    assert status in (b"200", b"201"), (status, answer)
    return answer


def measure(
    server: Server, call: Call, callers: int, seconds: float, wrong: list[bytes]
) -> Measured:
    """Let callers call for some seconds."""
    calling = Callers(server.address, call, callers)
    cpu, began = server.cpu(), time.monotonic()
    with calling.running():
        time.sleep(seconds)
    took, used = time.monotonic() - began, server.cpu() - cpu
    wrong += calling.asked.wrong
    count = max(1, len(calling.asked.seconds))
    return Measured(count / took, used / count * 1000)


def post(path: str, members: object, *headers: str) -> bytes:
    """Return the bytes of a request."""
    body = json.dumps(members).encode()
    head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", *headers]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


class Calls:
    """The requests that are made of a service at an address."""

    def __init__(self, own: OwnService, bearers: Sequence[str]) -> None:
        self._host = f"Host: {own.public_url.partition('://')[2]}"
        self._bearers = bearers
        self._links: list[bytes] = []

    def create(self, bearers: Sequence[str], token: str | None = None) -> bytes:
        """Create a share of 300 bytes, without a limit of views."""
        members = {
            "encryption_type": "e2ee-aes256-gcm",
            "data": base64.b64encode(secrets.token_bytes(300)).decode(),
            "access_token": token or secrets.token_urlsafe(32),
            "title": "A share of the load",
        }
        bearer, key = secrets.choice(bearers), secrets.token_hex(16)
        return post(
            "/v1/shares",
            members,
            self._host,
            f"Authorization: Bearer {bearer}",
            f"Idempotency-Key: {key}",
        )

    def make_links(self, address: tuple[str, int]) -> None:
        """Create the shares that are opened."""
        for _ in range(OPENED):
            token = secrets.token_urlsafe(32)
            made = json.loads(ask(address, self.create(self._bearers, token)))
            path = f"/links/shares/{made['short_code']}/open"
            self._links.append(post(path, {"access_token": token}, self._host))

    def kinds(self) -> dict[str, Call]:
        """What is measured, by name."""
        one, many = self._bearers[:1], self._bearers
        return {
            "creates, 1 key": lambda: self.create(one),
            f"creates, {len(many)} keys": lambda: self.create(many),
            "opens": lambda: secrets.choice(self._links),
        }


def insert_floor() -> bytes:
    """A call of the floor: as many bytes as a create has."""
    return post("/rows", {"data": "x" * 560}, "Host: floor")


NUMBERS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)",
    "postgresql": "WITH n AS (SELECT i FROM generate_series(1, %(count)s) AS g(i))",
}
RANDOM = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "md5(random()::text)"}
STORED = """ INSERT INTO shares (short_code, space, owner, key_id, created_at, encryption_type,
    data, access_token_sha256, title, expired_at, expires, passcode_attempts_left, custody)
    SELECT substr(RANDOM, 1, 16), 'default', 'default', 'k', 1.7e9, 'e2ee-aes256-gcm',
    RANDOM || RANDOM || RANDOM || RANDOM || RANDOM || RANDOM || RANDOM || RANDOM || RANDOM,
    RANDOM || RANDOM, 'A stored share', '2099-01-01T00:00:00.000Z', 4.07e9 + i, 5, 'none' FROM n"""
DATA = 9 * 32
"""Characters of the data of each, which stand for a ciphertext."""
COUNTED = """INSERT INTO counts VALUES ('shares', 'default', COUNT, 0)
    ON CONFLICT (what, space) DO UPDATE SET live = counts.live + COUNT"""


def fill(address: str, count: int) -> None:
    """Put shares into the database, with what the service counts of them."""
    file = file_of(address)
    store = "sqlite" if file else "postgresql"
    stored = NUMBERS[store] + STORED.replace("RANDOM", RANDOM[store])
    counted = COUNTED.replace("COUNT", str(count))
    if file:
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(stored, {"count": count})
            database.execute(counted)
        return
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(stored.encode(), {"count": count})
        connection.execute(counted.encode())
        connection.execute(b"VACUUM ANALYZE")


def size_of(address: str) -> int:
    """Bytes of the shares in a database, with their indexes."""
    file = file_of(address)
    if file:
        return Path(file).stat().st_size
    with psycopg.connect(address) as connection:
        row = connection.execute(b"SELECT pg_total_relation_size('shares')").fetchone()
    return 0 if row is None else int(row[0])


@contextmanager
def serve(own: OwnService, workers: int, postgres: Postgres | None) -> Iterator[Server]:
    """The service, at an address of its own."""
    here = replace(own, public_url=f"http://127.0.0.1:{free_port()}")
    process = here.start("--workers", str(workers))
    # Nobody waits for a reader of what it says.
    reader = threading.Thread(target=lambda: list(process.stderr or ()))
    reader.start()
    try:
        yield _server(here.public_url, list_workers(process), postgres)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        reader.join()


@contextmanager
def serve_floor(address: str, workers: int, postgres: Postgres | None) -> Iterator[Server]:
    """The floor, at an address of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        words = [sys.executable, str(FLOOR), str(listening.fileno()), address]
        processes = [subprocess.Popen(words, pass_fds=[listening.fileno()]) for _ in range(workers)]
        port = listening.getsockname()[1]
        try:
            ask(("127.0.0.1", port), insert_floor())
            yield _server(
                f"http://127.0.0.1:{port}", [process.pid for process in processes], postgres
            )
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()


def _server(url: str, pids: Sequence[int], postgres: Postgres | None) -> Server:
    host, _, port = url.partition("://")[2].partition(":")
    return Server((host, int(port)), pids, () if postgres is None else [postgres.pid()])


def soak(server: Server, call: Call, highest: float, seconds: float, wrong: list[bytes]) -> None:
    """Call at 70 % of the highest rate, and tell memory and latencies."""
    rate, count = 0.7 * highest, 16
    calling = Callers(server.address, call, count, pause=count / rate)
    memory: list[float] = []
    began = time.monotonic()
    with calling.running():
        for _ in range(max(2, round(seconds / 10))):
            time.sleep(min(10.0, seconds / 2))
            memory.append(server.memory())
    asked = calling.asked
    wrong += asked.wrong
    print(f"soak: {len(asked.seconds)} calls in {seconds:.0f} s, {rate:.0f} a second wanted")
    for name, took in (("due", asked.seconds), ("sent", asked.served)):
        hundredths = [1000 * each for each in quantiles(took, n=100)]
        print(
            f"soak: since it was {name} p50 {hundredths[49]:.1f} ms, p99 {hundredths[98]:.1f} ms, "
            f"longest {1000 * max(took):.0f} ms"
        )
    slow: dict[int, float] = {}
    for at, took_ in zip(asked.at, asked.served, strict=True):
        second = int(at - began)
        slow[second] = max(slow.get(second, 0.0), took_)
    slowest = sorted(sorted(slow, key=lambda each: -slow[each])[:SLOWEST])
    print("soak: slowest " + ", ".join(f"at {each} s {1000 * slow[each]:.0f}" for each in slowest))
    told = ", ".join(f"{each:.1f}" for each in memory[:: max(1, len(memory) // 10)])
    print(f"soak: memory in MB {told}; last {memory[-1]:.1f}, highest {max(memory):.1f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stored", type=int, default=0, help="shares that are there already")
    parser.add_argument(
        "--soak", type=float, default=0, help="seconds at 70 %% of the highest rate"
    )
    options = parser.parse_args(arguments)
    wrong: list[bytes] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = None
        if options.store == "postgresql":
            postgres = stack.enter_context(run_postgres("fsync=on"))
        own = make_own_service(folder, None if postgres is None else postgres.address)
        admin = OwnRunning(own)
        admin.set_account(requests_per_minute="unlimited", api_keys=KEYS + 1)
        bearers = [admin.create_key().reveal().rpartition(".")[0] for _ in range(KEYS)]
        admin.close()
        if options.stored:
            began = time.monotonic()
            fill(own.address, options.stored)
            print(
                f"{options.stored} shares were stored in {time.monotonic() - began:.0f} s, of "
                f"{size_of(own.address) / options.stored:.0f} bytes with their {DATA} of data"
            )
        floor_address = f"sqlite:///{folder / 'floor.db'}" if postgres is None else own.address
        servers = {
            workers: (
                stack.enter_context(serve_floor(floor_address, workers, postgres)),
                stack.enter_context(serve(own, workers, postgres)),
            )
            for workers in options.workers
        }
        some = servers[options.workers[0]][1]
        # The name in Host is that of the process that is asked.
        calls = {workers: Calls(_at(own, ours), bearers) for workers, (_, ours) in servers.items()}
        for workers, each in calls.items():
            each.make_links(servers[workers][1].address)
        found = _measure_all(options, servers, calls, wrong)
        _print(found, options.workers)
        if options.soak:
            kinds = calls[options.workers[0]].kinds()
            name = "creates, 1 key"
            create, opening = kinds[name], kinds["opens"]
            highest = median(each.rate for each in found[name][options.workers[0]][1])
            soak(
                some,
                lambda: secrets.choice((create, opening))(),
                highest,
                options.soak,
                wrong,
            )
    print(f"load average {os.getloadavg()[1]:.1f}, {os.cpu_count()} processors")
    for each in wrong[:10]:
        print(f"WRONG: {each!r}")
    return 1 if wrong else 0


def _at(own: OwnService, server: Server) -> OwnService:
    return replace(own, public_url=f"http://{server.address[0]}:{server.address[1]}")


Found = dict[str, dict[int, tuple[list[Measured], list[Measured]]]]


def _measure_all(
    options: argparse.Namespace,
    servers: dict[int, tuple[Server, Server]],
    calls: dict[int, Calls],
    wrong: list[bytes],
) -> Found:
    """Measure floor and service in turn, the numbers of processes in turn, too."""
    names = list(calls[options.workers[0]].kinds())
    found: Found = {name: {workers: ([], []) for workers in servers} for name in names}
    for _ in range(options.rounds):
        for name in names:
            for workers, (floor, ours) in servers.items():
                call = calls[workers].kinds()[name]
                for number, (server, one) in enumerate(((floor, insert_floor), (ours, call))):
                    one_of = measure(server, one, options.callers, options.seconds, wrong)
                    found[name][workers][number].append(one_of)
    return found


def _print(found: Found, workers: Sequence[int]) -> None:
    print(f"{'':24} {'floor/s':>8} {'ours/s':>8} {'ratio':>6}  {'CPU ms':>13} {'ratio':>6}")
    for name, by_workers in found.items():
        for count, (floor, ours) in by_workers.items():
            rate = median(one.rate / other.rate for other, one in zip(floor, ours, strict=True))
            cpu = median(other.cpu / one.cpu for other, one in zip(floor, ours, strict=True))
            print(
                f"{name + f', {count} processes':24} {_median(floor, 'rate'):8.0f} "
                f"{_median(ours, 'rate'):8.0f} {rate:6.2f}  "
                f"{_median(floor, 'cpu'):6.2f} {_median(ours, 'cpu'):6.2f} {cpu:6.2f}"
            )
        first, last = by_workers[workers[0]], by_workers[workers[-1]]
        for number, which in enumerate(("floor", "ours")):
            pairs = zip(first[number], last[number], strict=True)
            more = median(many.rate / one.rate for one, many in pairs)
            print(f"  {which}: {workers[-1]} processes are {more:.2f} times {workers[0]}")


def _median(measured: Sequence[Measured], what: str) -> float:
    return median(getattr(each, what) for each in measured)


if __name__ == "__main__":
    sys.exit(main())
