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

_MAX_STDERR: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
_KILL_TIMEOUT: Final = 1.0
"""Seconds that a killed program is waited for."""

_running: set[subprocess.Popen[bytes]] = set()


class ProgramResult(NamedTuple):
    """How a program ended (a negative status: by that signal), what it gave, and what it said on stderr."""

    status: int
    out: bytes
    errors: bytes
    """Its beginning only."""
    errors_length: int

    @property
    def outcome(self) -> str:
        """How it ended, for people."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        return f"was killed by signal {-self.status}"


class ProgramTimeoutError(Exception):
    """It had not ended in time, and was killed. Callers say it in their own words."""


def find_program(program: str, environ: Mapping[str, str], remedy: str) -> str:
    """The program's absolute path. NotConfiguredError where there is none.

    A name is looked up on PATH; what an entry of PATH finds relative to the working directory is not taken: a
    checkout would choose the program.
    """
    path = shutil.which(program, path=environ.get("PATH", os.defpath)) if program else None
    if path is None or not path.startswith("/"):
        raise NotConfiguredError(f"the program {program} is not on PATH", remedy=remedy)
    return path


def effective_timeout(timeout: float, deadline: float, *, is_configured: bool) -> float:
    """Seconds that a program may take: what the user `is_configured` for, else no more than the command's deadline."""
    return timeout if is_configured else min(timeout, deadline)


def run_program(argv: Sequence[str], name: str, *, environ: Mapping[str, str], timeout: float) -> ProgramResult:
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
            f"{name} cannot be started: {reason}", remedy="check that it is an executable program for this machine"
        )
    _running.add(process)
    try:
        return _read_output(process, name, time.monotonic() + timeout)
    finally:
        _kill(process)


def run_with_timeout(seconds: float, work: Callable[[], T]) -> T:
    """Return what the work returns, or raise what it raises. TimeoutError where it takes longer: it is left to run."""
    results: list[T] = []
    errors_raised: list[BaseException] = []

    def run_program() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that waits
            errors_raised.append(error)

    worker = threading.Thread(target=run_program, name="sealpipe-time-limit", daemon=True)
    worker.start()
    worker.join(seconds)
    if errors_raised:
        raise errors_raised[0]
    if not results:
        raise TimeoutError("it did not finish in time")
    return results[0]


def _read_output(process: subprocess.Popen[bytes], name: str, end: float) -> ProgramResult:
    out, errors, length = bytearray(), bytearray(), 0
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            selector.register(_require_pipe(stream), selectors.EVENT_READ)
        # Only stdout's end is waited for: a helper that stays (an agent) may keep stderr open.
        while process.stdout in [key.fileobj for key in selector.get_map().values()]:
            remaining = end - time.monotonic()  # looked at each time: one that never stops talking is late, too
            ready = selector.select(remaining) if remaining > 0 else ()
            if not ready:
                raise ProgramTimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += chunk
                else:
                    length += len(chunk)
                    errors += chunk[: _MAX_STDERR - len(errors)]
            if len(out) > PLAINTEXT_LIMIT:
                raise PayloadTooLargeError(f"{name} wrote more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB")
        try:
            status = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ProgramTimeoutError from None
        os.set_blocking(_require_pipe(process.stderr).fileno(), False)
        with suppress(BlockingIOError):
            while time.monotonic() < end and (chunk := os.read(_require_pipe(process.stderr).fileno(), _CHUNK)):
                length += len(chunk)
                errors += chunk[: _MAX_STDERR - len(errors)]
    return ProgramResult(status, bytes(out), bytes(errors), length)


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101 - for the type checker: both are pipes
    return stream


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of it, its own children too, and close the pipes."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # its session: nobody else is in that group
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_TIMEOUT)  # one that became another user (sudo) is not ours to kill, and goes on
    for stream in (process.stdout, process.stderr):
        _require_pipe(stream).close()
    if process.returncode is not None:
        _running.discard(process)


@atexit.register
def _kill_all() -> None:
    for process in list(_running):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
