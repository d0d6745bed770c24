"""Starts the processes that serve, starts another where one ends, and ends them all.

None of its processes gets an address of the database in its arguments or variables: see `worker`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import FrameType

from .clock import system_clock
from .logs import make_line
from .meters import Board

READY = b"ready\n"
FAILED = b"failed "
DRAIN, END = b"d", b"e"
"""What workers are told: that the service is about to stop, and that it stops. They mind no signal,
for a terminal, and whoever stops a machine, sends one to each process of a service.
"""
END_SECONDS = 35.0
"""How long a worker may take to end: its own limit for open calls, and a bit."""
LONGEST_WAIT = 30
"""Seconds, at most, before another worker replaces one that did not even start."""
POLL_SECONDS = 0.05
"""How often to look whether the workers have ended."""


class WorkerError(Exception):
    """A worker did not start; its message says why, if that is known."""


@dataclass(frozen=True)
class ServerSettings:
    """What a worker has to know. `tls` are the files of certificate and key.

    `webhook_key` opens the secrets of webhooks (see `sealing`). Webhooks may go to
    `webhook_networks` besides public addresses. `mail` is the address of the mail server, which may
    hold a password, and whom mails are from. `ca_file` is trusted besides what the machine trusts.
    """

    database: str = field(repr=False)
    public_url: str
    version: str
    tls: tuple[str, str] | None = None
    proxies: Sequence[str] = ()
    webhook_key: str | None = field(default=None, repr=False)
    webhook_networks: Sequence[str] = ()
    mail: tuple[str, str] | None = field(default=None, repr=False)
    logs_addresses: bool = False
    ca_file: str | None = None


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    control: socket.socket
    said: bytes = b""

    @property
    def is_ready(self) -> bool:
        return self.said.startswith(READY)

    def explain(self) -> str:
        """Return why it has ended."""
        while said := _read(self.control):  # what it said last may not have been read yet
            self.said += said
        _, begun, reason = self.said.partition(FAILED)
        return reason.decode().strip() if begun else "a process that should serve has ended"


def serve(
    settings: ServerSettings,
    listening: socket.socket,
    board: Board,
    environ: Mapping[str, str],
    announce: Callable[[], None],
    delay: float = 0.0,
) -> None:
    """Serve with a process for each slot of a board until SIGINT or SIGTERM, then let them finish
    open calls.

    `environ` is their environment; `announce` is called once all of them serve. Once it is told to
    stop, it says so at /readyz for `delay` seconds and goes on; then it closes the socket. A second
    signal cuts what is open. Raises WorkerError if a worker does not start at first; later that is
    tried again and again.
    """
    line = json.dumps(asdict(settings)).encode() + b"\n"

    def start(slot: int) -> _Worker:
        board.starts += 1
        ours, theirs = socket.socketpair()
        with theirs:
            descriptors = [listening.fileno(), theirs.fileno(), board.fileno()]
            arguments = [sys.executable, "-P", "-m", __name__.replace("supervising", "worker")]
            process = subprocess.Popen(  # noqa: S603  # this Python, a module of ours, numbers
                [*arguments, *map(str, [*descriptors, slot])],
                pass_fds=descriptors,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
            )
        with contextlib.suppress(BrokenPipeError):  # it was killed: who waits for it sees that
            ours.sendall(line)
        return _Worker(process, ours)

    team: list[_Worker] = []
    seconds = END_SECONDS
    with _told_to_stop() as stopped:
        try:
            team += [start(slot) for slot in range(board.slots)]
            _keep(team, start, stopped, announce)
            _tell(team, DRAIN)
            seconds = 0.0 if _wait([], stopped, delay) else END_SECONDS
        finally:
            listening.close()
            _end(team, stopped, seconds)


def _keep(
    team: list[_Worker],
    start: Callable[[int], _Worker],
    stopped: int,
    announce: Callable[[], None],
) -> None:
    """Start another worker for one that has ended, until we are told to stop."""
    is_announced = False
    failures = [0] * len(team)
    due: dict[int, float] = {}
    """When another worker is started, by the place of the one that has ended."""
    while not _wait(
        [each for place, each in enumerate(team) if place not in due], stopped, _find_next(due)
    ):
        for place, worker in enumerate(team):
            if place not in due and worker.process.poll() is not None:
                if not is_announced:
                    raise WorkerError(worker.explain())
                failures[place] = 0 if worker.is_ready else failures[place] + 1
                seconds = find_wait(failures[place])
                later = f" in {seconds} s" if seconds else ""
                _warn(f"{worker.explain()}; another is started{later}")
                worker.control.close()
                due[place] = time.monotonic() + seconds
            if due.get(place, math.inf) <= time.monotonic():
                del due[place]
                team[place] = start(place)
        if not is_announced and all(worker.is_ready for worker in team):
            is_announced = True
            announce()


def _find_next(due: Mapping[int, float]) -> float | None:
    return max(0.0, min(due.values()) - time.monotonic()) if due else None


def find_wait(failures: int) -> int:
    """Return how many seconds to wait after so many workers in a row that did not start."""
    return min(2 ** (failures - 1), LONGEST_WAIT) if failures else 0


def _warn(message: str) -> None:
    with contextlib.suppress(OSError):  # where nobody reads stderr, there is nobody to tell
        sys.stderr.write(make_line(system_clock(), "warning", message, {}) + "\n")


def _wait(team: Sequence[_Worker], stopped: int, seconds: float | None) -> bool:
    """Wait until a worker said something or ended, or for some seconds; return whether we were told
    to stop.
    """
    sources: list[int | socket.socket] = [stopped, *(each.control for each in team)]
    found, _, _ = select.select(sources, [], [], seconds)
    for worker in team:
        if worker.control in found:
            said = _read(worker.control)
            worker.said += said
            if not said:  # it has ended, or is about to
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(END_SECONDS)
                worker.process.kill()
                worker.process.wait()
    if stopped not in found:
        return False
    os.read(stopped, 1)
    return True


def _read(control: socket.socket) -> bytes:
    """Read what a worker said: nothing at its end, also where it was killed before it listened."""
    try:
        return control.recv(4096)
    except ConnectionResetError:
        return b""


def _tell(team: Sequence[_Worker], what: bytes) -> None:
    for worker in team:
        with contextlib.suppress(OSError):  # it has ended
            worker.control.sendall(what)


def _end(team: Sequence[_Worker], stopped: int, seconds: float) -> None:
    """Let workers finish open calls, until it takes too long or we are told again to stop."""
    _tell(team, END)
    for worker in team:
        worker.process.terminate()  # one that does not serve yet
    deadline = time.monotonic() + seconds
    while any(worker.process.poll() is None for worker in team) and time.monotonic() < deadline:
        if _wait([], stopped, POLL_SECONDS):
            break
    for worker in team:
        worker.process.kill()
        worker.process.wait()
        worker.control.close()


@contextlib.contextmanager
def _told_to_stop() -> Iterator[int]:
    """Give a descriptor that can be read from once SIGINT or SIGTERM came.

    Outside of the main thread no signal comes.
    """
    reading, writing = os.pipe()

    def note(number: int, _: FrameType | None) -> None:  # noqa: ARG001
        os.write(writing, b".")

    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    previous = {number: signal.signal(number, note) for number in signals}
    try:
        yield reading
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
