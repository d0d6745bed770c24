"""Runs foreign code with a time limit: programs, and SDKs that know no deadline.

A program is started without a shell, and none of sealpipe's own variables are in its environment.

It has no terminal (a session of its own) and, unless it is given one, no standard input: it cannot
prompt. Its stderr may contain paths and data: callers search it for known messages and never show
it.
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
"""Seconds to wait for a killed program."""

_running: set[subprocess.Popen[bytes]] = set()


class ProgramResult(NamedTuple):
    """A program's exit status (negative: its signal), output, and beginning of stderr."""

    status: int
    out: bytes
    errors: bytes
    """Only the beginning of stderr is kept."""
    errors_length: int

    @property
    def outcome(self) -> str:
        """How it ended, for messages."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        return f"was killed by signal {-self.status}"


class ProgramTimeoutError(Exception):
    """The program did not finish in time and was killed. Callers raise their own error."""


def find_program(program: str, environ: Mapping[str, str], remedy: str) -> str:
    """Return the program's absolute path, looked up on PATH. NotConfiguredError if it is not found.

    Relative entries of PATH are ignored: otherwise a checkout could choose the program.
    """
    path = shutil.which(program, path=environ.get("PATH", os.defpath)) if program else None
    if path is None or not path.startswith("/"):
        raise NotConfiguredError(f"the program {program} is not on PATH", remedy=remedy)
    return path


def effective_timeout(timeout: float, deadline: float, *, is_configured: bool) -> float:
    """Return a program's timeout: the user's setting, otherwise at most the command's deadline."""
    return timeout if is_configured else min(timeout, deadline)


def run_program(
    argv: Sequence[str],
    name: str,
    *,
    environ: Mapping[str, str],
    timeout: float,
    stdin: bytes | None = None,
) -> ProgramResult:
    """Run a program and return its stdout, up to 16 MiB. `name` is its name in errors.

    It need not read what it gets as `stdin`.

    Raises ProgramTimeoutError after `timeout` seconds, PayloadTooLargeError, and NotConfiguredError
    if it cannot be started.
    """
    try:
        process = _start(argv, environ, subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        reason = ""
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise NotConfiguredError(
            f"{name} cannot be started: {reason}",
            remedy="check that it is an executable program for this machine",
        )
    try:
        return _exchange(process, name, time.monotonic() + timeout, stdin or b"")
    finally:
        _kill(process)


def run_with_timeout(seconds: float, work: Callable[[], T]) -> T:
    """Return or raise the result of `work`.

    Raises TimeoutError if it takes longer: its thread keeps running.
    """
    results: list[T] = []
    errors_raised: list[BaseException] = []

    def run_program() -> None:
        try:
            results.append(work())
        # It is raised below, in the thread that waits.
        except BaseException as error:  # noqa: BLE001
            errors_raised.append(error)

    worker = threading.Thread(target=run_program, name="sealpipe-time-limit", daemon=True)
    worker.start()
    worker.join(seconds)
    if errors_raised:
        raise errors_raised[0]
    if not results:
        raise TimeoutError("it did not finish in time")
    return results[0]


def _start(argv: Sequence[str], environ: Mapping[str, str], stdin: int) -> subprocess.Popen[bytes]:
    """Start the program. Raises OSError.

    In a thread: where signals raise exceptions, one could be raised after the program has started
    and before Popen returns, and nobody would know the program.
    """
    started: list[subprocess.Popen[bytes]] = []
    errors: list[Exception] = []
    ended = threading.Event()

    def start() -> None:
        try:
            # No shell; argv is a list of words, never a shell line.
            process = subprocess.Popen(  # noqa: S603
                list(argv),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environ),
                start_new_session=True,
            )
            _running.add(process)
            started.append(process)
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that waits
            errors.append(error)
        finally:
            ended.set()

    try:
        threading.Thread(target=start, name="sealpipe-start", daemon=True).start()
        ended.wait()
    except BaseException:
        ended.wait(_KILL_TIMEOUT)
        for process in started:
            _kill(process)
        raise
    if errors:
        raise errors[0]
    return started[0]


class _Errors:
    """What a program wrote to stderr: only the beginning is kept."""

    def __init__(self) -> None:
        self.beginning = bytearray()
        self.length = 0

    def add(self, chunk: bytes) -> None:
        self.length += len(chunk)
        self.beginning += chunk[: _MAX_STDERR - len(self.beginning)]


def _exchange(
    process: subprocess.Popen[bytes], name: str, end: float, stdin: bytes
) -> ProgramResult:
    """Write the program's standard input, and read its output."""
    out, errors, unwritten = bytearray(), _Errors(), memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            selector.register(_require_pipe(stream), selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        # Does not wait for the end of stderr: a background helper (an agent) may keep it open.
        while {process.stdin, process.stdout} & {
            key.fileobj for key in selector.get_map().values()
        }:
            # Checked each time, so that endless output cannot avoid the timeout.
            remaining = end - time.monotonic()
            ready = selector.select(remaining) if remaining > 0 else ()
            if not ready:
                raise ProgramTimeoutError
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    unwritten = _write_some(key.fd, unwritten)
                    if not unwritten:
                        selector.unregister(key.fileobj)
                        process.stdin.close()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    out += chunk
                else:
                    errors.add(chunk)
            if len(out) > PLAINTEXT_LIMIT:
                raise PayloadTooLargeError(
                    f"{name} wrote more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB"
                )
        try:
            status = process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ProgramTimeoutError from None
        os.set_blocking(_require_pipe(process.stderr).fileno(), False)
        with suppress(BlockingIOError):
            while time.monotonic() < end and (
                chunk := os.read(_require_pipe(process.stderr).fileno(), _CHUNK)
            ):
                errors.add(chunk)
    return ProgramResult(status, bytes(out), bytes(errors.beginning), errors.length)


def _write_some(descriptor: int, content: memoryview) -> memoryview:
    """Write as much as the pipe takes, and return the rest.

    Nothing is left if the program reads no more.
    """
    try:
        return content[os.write(descriptor, content[:_CHUNK]) :]
    except BrokenPipeError:
        return content[:0]


def _require_pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # noqa: S101 - for the type checker: both are pipes
    return stream


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and its children, and close the pipes."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # the process group of its own session
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_TIMEOUT)  # a program that changed its user (sudo) cannot be killed
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    if process.returncode is not None:
        _running.discard(process)


@atexit.register
def _kill_all() -> None:
    for process in list(_running):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
