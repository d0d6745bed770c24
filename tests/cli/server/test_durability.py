"""What a service of one's own has answered is on the disk."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from support.own_service import OwnService, list_workers, make_own_service, wait_for
from support.parts import Postgres, program, run_postgres

DATA = "c2VhbGVk" * 40
BODY = {"encryption_type": "e2ee-aes256-gcm", "data": DATA, "access_token": "t" * 43}
SYNCED = re.compile(r"^(\d+) .*f(?:data)?sync\(\d+<[^>]*(?:service\.db-wal|/pg_wal/\w+)>")
LOGGED = re.compile(rf"pwrite(?:64|v)\(\d+<[^>]*(?:service\.db-wal|/pg_wal/\w+)>.*{DATA[:24]}")


@contextmanager
def traced(processes: Sequence[int], log: Path) -> Iterator[Callable[[], list[str]]]:
    """Watch what processes sync and send; gives what they have done, a line for each call's end."""
    calls = "trace=fsync,fdatasync,sendto,sendmsg,write,writev,pwrite64,pwritev"
    words = [program("strace"), "-f", "-qq", "-yy", "-s", "30000", "-e", calls, "-o", str(log)]
    attached = [word for each in processes for word in ("-p", str(each))]
    with subprocess.Popen([*words, *attached]) as tracer:
        states = [Path(f"/proc/{each}/status") for each in processes]
        mark = f"TracerPid:\t{tracer.pid}\n"
        wait_for(lambda: all(mark in state.read_text() for state in states))
        yield lambda: list(_ended(log.read_text().splitlines()))
        tracer.send_signal(signal.SIGINT)


def _ended(lines: list[str]) -> Iterator[str]:
    """Lines in the order of the calls' ends; an answer counts from where it begins."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line
            if "HTTP/1.1" in line:
                yield line
        elif " resumed>" in line:
            first = begun.pop(thread, "")
            if "HTTP/1.1" not in first:
                yield first + line
        else:
            yield line


@dataclass
class Machine:
    """A service, and the processes of its PostgreSQL, if it has one."""

    own: OwnService
    server: Postgres | None

    def processes(self) -> Sequence[int]:
        """Return what runs of PostgreSQL now; it makes the others."""
        return [] if self.server is None else self.server.processes()

    def in_background(self) -> set[str]:
        """Return what PostgreSQL does by itself, when it comes to it."""
        if self.server is None:
            return set()
        with psycopg.connect(self.server.address) as connection:
            text = "SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend'"
            return {str(process) for (process,) in connection.execute(text.encode())}


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    if request.param == "SQLite":
        yield Machine(make_own_service(tmp_path / "service"), None)
        return
    # Whatever its operator made of the durability of a commit.
    with run_postgres("fsync=on", "synchronous_commit=off") as server:
        yield Machine(make_own_service(tmp_path / "service", server.address), server)


def test_a_create_is_synced_before_it_is_answered_and_a_read_syncs_nothing(
    machine: Machine, tmp_path: Path
) -> None:
    own = machine.own
    with own.running("--workers", "1") as process, _client(own) as http:
        (worker,) = list_workers(process)
        assert http.get("/shares").status_code == 200  # its connections are open
        with traced([worker, *machine.processes()], tmp_path / "trace") as done:
            background = machine.in_background()
            assert http.get("/shares").status_code == 200
            wait_for(lambda: _find_answer(done(), 200) is not None)
            assert _find_synced(done(), background) == []
            made = http.post("/shares", json=BODY, headers={"Idempotency-Key": "key"})
            assert made.status_code == 201
            wait_for(lambda: _find_answer(done(), 201) is not None)
            lines = done()
        (logged, *_) = [at for at, line in enumerate(lines) if LOGGED.search(line)]
        synced = _find_synced(lines, background)
        answered = _find_answer(lines, 201)
        assert answered is not None
        assert len(synced) == 1, "one commit of a create waits for the disk"
        assert logged < synced[0] < answered


def _find_synced(lines: list[str], background: set[str]) -> list[int]:
    """Return where somebody who serves a call waited for the log's disk."""
    found = ((at, SYNCED.search(line)) for at, line in enumerate(lines))
    return [at for at, match in found if match and match[1] not in background]


def _find_answer(lines: list[str], status: int) -> int | None:
    return next((at for at, line in enumerate(lines) if f"HTTP/1.1 {status}" in line), None)


def _client(own: OwnService) -> httpx.Client:
    two_parts = own.exports["SEALPIPE_API_KEY"].rpartition(".")[0]
    headers = {"Authorization": f"Bearer {two_parts}"}
    return httpx.Client(base_url=f"{own.public_url}/v1", headers=headers, trust_env=False)
