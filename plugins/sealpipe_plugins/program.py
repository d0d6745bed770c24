"""Running what is not ours, with a time limit: programs, and SDKs that know no deadline.

A program is started without a shell and without anything of sealpipe's own in its environment.

A program has no standard input and no terminal (a session of its own), so it asks nobody anything. What it writes to
stderr may hold paths and data: callers look for what they know in it, and never show it.
"""

from __future__ import annotations

import atexit
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple, TypeVar

from sealpipe.plugin import PLAINTEXT_LIMIT, NotConfiguredError, PayloadTooLargeError

T = TypeVar("T")

_ERRORS_KEPT: Final = 64 * 1024
_PIECE: Final = 64 * 1024
_DYING: Final = 1.0
"""Seconds that a killed program is waited for."""

_running: set[subprocess.Popen[bytes]] = set()


class Ran(NamedTuple):
    """How a program ended (a negative status: by that signal), what it gave, and what it said on stderr."""

    status: int
    out: bytes
    errors: bytes
    """Its beginning only."""
    errors_length: int

    @property
    def end(self) -> str:
        """How it ended, for people."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        return f"was ended by signal {-self.status}"


class ProgramTimeoutError(Exception):
    """It had not ended in time, and was killed. Callers say it in their own words."""


def find(program: str, environ: Mapping[str, str], remedy: str) -> str:
    """The program's absolute path. NotConfiguredError where there is none.

    A name is looked up on PATH; what an entry of PATH finds relative to the working directory is not taken: a
    checkout would choose the program.
    """
    found = shutil.which(program, path=environ.get("PATH", os.defpath)) if program else None
    if found is None or not found.startswith("/"):
        raise NotConfiguredError(f"the program {program} is not on PATH", remedy=remedy)
    return found


def patience(timeout: float, deadline: float, *, asked: bool) -> float:
    """Seconds that a program may take: what the user `asked` for, else no more than the command's deadline."""
    return timeout if asked else min(timeout, deadline)


def run(argv: Sequence[str], name: str, *, environ: Mapping[str, str], timeout: float) -> Ran:
    """Start a program and read what it writes to stdout, up to 16 MiB. `name` is what errors call it.

    Raises ProgramTimeoutError after `timeout` seconds, PayloadTooLargeError, and NotConfiguredError where it cannot be
    started.
    """
    reason = ""
    try:
        process = subprocess.Popen(  # noqa: S603 - no shell; callers hand over words, never a line
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise NotConfiguredError(
            f"{name} cannot be started: {reason}", remedy="check that it is a program of this machine"
        )
    _running.add(process)
    try:
        return _read(process, name, time.monotonic() + timeout)
    finally:
        _end(process)


def run_with_timeout(seconds: float, work: Callable[[], T]) -> T:
    """Return what the work returns, or raise what it raises. TimeoutError where it takes longer: it is left to run."""
    given: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that waits
            raised.append(error)

    worker = threading.Thread(target=run, name="sealpipe-time-limit", daemon=True)
    worker.start()
    worker.join(seconds)
    if raised:
        raise raised[0]
    if not given:
        raise TimeoutError("it did not come to an end in time")
    return given[0]


def _read(process: subprocess.Popen[bytes], name: str, end: float) -> Ran:
    out, errors, length = bytearray(), bytearray(), 0
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            selector.register(_pipe(stream), selectors.EVENT_READ)
        # Only stdout's end is waited for: a helper that stays (an agent) may keep stderr open.
        while process.stdout in [key.fileobj for key in selector.get_map().values()]:
            left = end - time.monotonic()  # looked at each time: one that never stops talking is late, too
            ready = selector.select(left) if left > 0 else ()
            if not ready:
                raise ProgramTimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += piece
                else:
                    length += len(piece)
                    errors += piece[: _ERRORS_KEPT - len(errors)]
            if len(out) > PLAINTEXT_LIMIT:
                raise PayloadTooLargeError(f"{name} gave more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB")
        try:
            status = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ProgramTimeoutError from None
        os.set_blocking(_pipe(process.stderr).fileno(), False)
        with suppress(BlockingIOError):
            while time.monotonic() < end and (piece := os.read(_pipe(process.stderr).fileno(), _PIECE)):
                length += len(piece)
                errors += piece[: _ERRORS_KEPT - len(errors)]
    return Ran(status, bytes(out), bytes(errors), length)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101 - for the type checker: both are pipes
    return stream


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of it, its own children too, and close the pipes."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # its session: nobody else is in that group
        with suppress(subprocess.TimeoutExpired):
            process.wait(_DYING)  # one that became another user (sudo) is not ours to kill, and goes on
    for stream in (process.stdout, process.stderr):
        _pipe(stream).close()
    if process.returncode is not None:
        _running.discard(process)


@atexit.register
def _end_all() -> None:
    for process in list(_running):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
