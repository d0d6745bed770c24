"""Runs `sealpipe WORDS` to its end with exactly one environment: here, forked, or started whole.

A command takes 3 ms of CPU in the process of the tests, on descriptors of its own; 25 ms forked
from a process that has imported what it imports (`support.forked`); and 200 ms if it is started. It
runs here unless that makes a difference: whatever a process has of its own is put back,
descriptors, streams, environment, folder, signal handlers, clean-ups, and the audit logs that it
wrote.
"""

from __future__ import annotations

import atexit
import functools
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from sealpipe import config
from sealpipe.cli import disclosure, main
from sealpipe.network import plugin_network
from sealpipe.registry.stores import AUDIT_MODULE
from support import forked

SEALPIPE = (sys.executable, "-m", "sealpipe")
LANG = "C.UTF-8"
SAME_CALLS = {"PYTHONHASHSEED": "0"}
"""So that a second start makes the same system calls as the first.

What is forked from one process does so anyhow.
"""
_AT_ONCE = 1 << 16
_MAIN = "\nfrom sealpipe.__main__ import main\nmain()\n"
_ELSEWHERE = (
    "from pathlib import Path; from sealpipe import config; config.MACHINE_CONFIG = Path({!r})"
)
_STARTING = threading.Lock()
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Ran = subprocess.CompletedProcess[bytes]


def run(
    words: Sequence[str],
    *,
    stdin: bytes,
    environ: Mapping[str, str],
    cwd: Path,
    timeout: float,
    machine: Path | None = None,
    apart: bool = False,
    tracer: Sequence[str] = (),
) -> Ran:
    """Run a command to its end.

    `machine` is the machine's config file, where it is not the real one.

    `apart`: in a process of its own. So it is beside another thread's work, too: two commands
    cannot share one process. `tracer`: the words of an strace that watches it; then it also waits
    before it tries again, as users' commands do.
    """
    before = "" if machine is None else _ELSEWHERE.format(str(machine))
    if must_be_whole(environ):
        start = [*tracer, *([sys.executable, "-c", before + _MAIN] if before else SEALPIPE)]
        environ = {**environ, **(SAME_CALLS if tracer else {})}
        return subprocess.run(
            [*start, *words],
            input=stdin,
            capture_output=True,
            env=environ,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    if apart or tracer or threading.current_thread() is not threading.main_thread():
        return _run_forked(words, stdin, environ, cwd, timeout, before, tracer)
    with ExitStack() as stack:
        if machine is not None:
            stack.enter_context(mock.patch.object(config, "MACHINE_CONFIG", machine))
        return _run_here(words, stdin, environ, cwd, timeout)


def must_be_whole(environ: Mapping[str, str]) -> bool:
    """Whether the environment makes a difference to Python itself: what is forked has started
    without it.
    """
    return environ.get("LANG") != LANG or any(name.startswith(forked.UNLIKE) for name in environ)


def _run_here(
    words: Sequence[str], stdin: bytes, environ: Mapping[str, str], cwd: Path, timeout: float
) -> Ran:
    theirs, ours = _pipes()
    with ThreadPoolExecutor(1) as pool:
        exchanged = pool.submit(_exchange, ours, stdin, time.monotonic() + timeout, words)
        hasty = mock.patch.object(disclosure, "MASK_DELAY", 0.0)  # as `forked.print_at_once`
        with (
            chdir(cwd),
            _streams(theirs),
            _environment(environ),
            _audit_heads(),
            _clean_ups(),
            _handlers(),
            hasty,
        ):
            code = _call(words)
        out, err = exchanged.result()
    return subprocess.CompletedProcess(words, code, out, err)


def _call(words: Sequence[str]) -> int:
    """The exit code of a command line. One that a plugin ends is not caught."""
    try:
        code: object = main.run(words)
    except SystemExit as end:
        code = end.code
    if isinstance(code, int) or code is None:
        return code or 0
    print(code, file=sys.stderr)
    return 1


@contextmanager
def _audit_heads() -> Iterator[None]:
    """A command tells the heads of the logs that it wrote: not those of a test before it."""
    before = sys.modules.pop(AUDIT_MODULE, None)
    try:
        yield
    finally:
        sys.modules.pop(AUDIT_MODULE, None)
        if before is not None:
            sys.modules[AUDIT_MODULE] = before


@contextmanager
def _streams(ends: Sequence[int]) -> Iterator[None]:
    """The standard streams, as Python makes them of pipes."""
    kept = [os.dup(number) for number in range(3)]
    before = sys.stdin, sys.stdout, sys.stderr
    _put(ends)
    try:
        with (
            open(0, encoding="utf-8", errors="surrogateescape", closefd=False) as sys.stdin,
            open(
                1, "w", encoding="utf-8", errors="surrogateescape", newline="\n", closefd=False
            ) as sys.stdout,
            open(
                2, "w", 1, encoding="utf-8", errors="backslashreplace", newline="\n", closefd=False
            ) as sys.stderr,
        ):
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        _put(kept)


def _put(ends: Sequence[int]) -> None:
    """Make them the standard streams."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)


@contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    try:
        _set(environ)
        yield
    finally:
        _set(before)


def _set(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()


@contextmanager
def _clean_ups() -> Iterator[None]:
    """What a command wants done at the end of its process is done at its own end; not what Python
    wants done there.
    """
    with ExitStack() as stack:

        def register(
            function: Callable[..., object], *args: object, **named: object
        ) -> Callable[..., object]:
            stack.callback(function, *args, **named)
            return function

        with mock.patch.object(plugin_network, "atexit", SimpleNamespace(register=register)):
            yield


@contextmanager
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_forked(
    words: Sequence[str],
    stdin: bytes,
    environ: Mapping[str, str],
    cwd: Path,
    timeout: float,
    before: str,
    tracer: Sequence[str],
) -> Ran:
    theirs, ours = _pipes()
    ours_too, gate = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as line, ours_too, ExitStack() as stack:
        try:
            # Of several threads one starts what all their commands are forked from.
            with (
                _STARTING,
                gate,
            ):
                line.connect(str(open_door()))
                _hand_over(
                    line,
                    before,
                    words,
                    environ,
                    cwd,
                    [*theirs, *([gate.fileno()] if tracer else [])],
                )
        finally:
            for end in theirs:
                os.close(end)
        if tracer:
            stack.enter_context(forked.traced(tracer, ours_too))
        out, err = _exchange(ours, stdin, time.monotonic() + timeout, words)
        line.settimeout(timeout)
        code = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big", signed=True)
    return subprocess.CompletedProcess(words, code, out, err)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The command's ends of its three streams, and ours."""
    (reads, stdin), (out, writes), (err, writes_too) = os.pipe(), os.pipe(), os.pipe()
    return (reads, writes, writes_too), (stdin, out, err)


def _hand_over(
    line: socket.socket,
    before: str,
    words: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path,
    streams: Sequence[int],
) -> None:
    umask = os.umask(0)
    os.umask(umask)
    variables = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in environ.items()]
    told = b"\0".join(
        [b"%d" % umask, before.encode(), b"%d" % len(words), *map(os.fsencode, words), *variables]
    )
    here = os.open(cwd, os.O_RDONLY)
    try:
        socket.send_fds(line, [len(told).to_bytes(8, "big")], [*streams, here])
    finally:
        os.close(here)
    line.sendall(told)


def _exchange(
    ends: Sequence[int], stdin: bytes, until: float, words: Sequence[str]
) -> tuple[bytes, bytes]:
    """Write what the command reads, and read what it writes, until it has closed both."""
    told, *read = ends
    found = dict.fromkeys(read, b"")
    left = memoryview(stdin)
    opened = set(ends)
    os.set_blocking(told, False)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(told, selectors.EVENT_WRITE)
            for end in read:
                selector.register(end, selectors.EVENT_READ)
            while found.keys() & opened:
                ready = selector.select(max(until - time.monotonic(), 0))
                if not ready:
                    raise subprocess.TimeoutExpired(list(words), 0, *found.values())
                for key, _ in ready:
                    end = key.fd
                    if end == told:
                        try:
                            left = left[os.write(end, left[:_AT_ONCE]) :] if left else left
                        except BrokenPipeError:
                            left = left[:0]
                        more = bool(left)
                    else:
                        piece = os.read(end, _AT_ONCE)
                        found[end] += piece
                        more = bool(piece)
                    if not more:
                        selector.unregister(end)
                        opened.remove(end)
                        os.close(end)
    finally:
        for end in opened:
            os.close(end)
    out, err = found.values()
    return out, err


@functools.cache
def open_door() -> Path:
    """Where the process listens that commands are forked from; one for each process of tests, as
    long as it lives.
    """
    folder = Path(tempfile.mkdtemp())
    door = folder / "door"
    environ = {"PATH": os.environ["PATH"], "LANG": LANG}
    process = subprocess.Popen(
        [sys.executable, forked.__file__, str(door)], stdin=subprocess.PIPE, env=environ, cwd="/"
    )

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    while not door.exists():
        assert process.poll() is None, "what commands are forked from did not start"
        time.sleep(0.01)
    return door
