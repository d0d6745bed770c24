"""What a service of one's own has answered is on the disk."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.own_service import OwnService, list_workers, make_own_service, wait_for
from support.parts import program

BODY = {"encryption_type": "e2ee-aes256-gcm", "data": "Y2lwaGVydGV4dA==", "access_token": "t" * 43}
SYNCED = re.compile(r"f(?:data)?sync\(\d+<[^>]*service\.db-wal>")


@contextmanager
def traced(process: int, log: Path) -> Iterator[Callable[[], list[str]]]:
    """Watch what a process syncs and sends; gives what it has done, a line for each call's end."""
    calls = "trace=fsync,fdatasync,sendto,sendmsg,write,writev"
    words = [program("strace"), "-f", "-qq", "-yy", "-s", "40", "-e", calls, "-o", str(log)]
    with subprocess.Popen([*words, "-p", str(process)]) as tracer:
        status = Path(f"/proc/{process}/status")
        wait_for(lambda: f"TracerPid:\t{tracer.pid}\n" in status.read_text())
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


def test_a_create_is_synced_before_it_is_answered_and_a_read_syncs_nothing(tmp_path: Path) -> None:
    own = make_own_service(tmp_path)
    with own.running("--workers", "1") as process, _client(own) as http:
        (worker,) = list_workers(process)
        assert http.get("/shares").status_code == 200  # its connections are open
        with traced(worker, tmp_path / "trace") as done:
            assert http.get("/shares").status_code == 200
            wait_for(lambda: _find_answer(done(), 200) is not None)
            assert [line for line in done() if SYNCED.search(line)] == []
            made = http.post("/shares", json=BODY, headers={"Idempotency-Key": "key"})
            assert made.status_code == 201
            wait_for(lambda: _find_answer(done(), 201) is not None)
            lines = done()
        synced = [at for at, line in enumerate(lines) if SYNCED.search(line)]
        answered = _find_answer(lines, 201)
        assert answered is not None
        assert synced, lines
        assert synced[0] < answered
        assert len(synced) == 1, "one commit of a create waits for the disk"


def _find_answer(lines: list[str], status: int) -> int | None:
    return next((at for at, line in enumerate(lines) if f"HTTP/1.1 {status}" in line), None)


def _client(own: OwnService) -> httpx.Client:
    two_parts = own.exports["SEALPIPE_API_KEY"].rpartition(".")[0]
    headers = {"Authorization": f"Bearer {two_parts}"}
    return httpx.Client(base_url=f"{own.public_url}/v1", headers=headers, trust_env=False)
