"""How tests start `sealpipe`: whole, or forked from a process that has imported it already."""

from __future__ import annotations

import atexit
import functools
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from support import forked

SEALPIPE = (sys.executable, "-m", "sealpipe")
LANG = "C.UTF-8"
_AT_ONCE = 1 << 16


def run(
    words: Sequence[str], *, stdin: bytes, environ: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run `sealpipe WORDS` to its end, with exactly this environment: forked wherever that makes no difference."""
    if must_be_whole(environ):
        command = [*SEALPIPE, *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, env=environ, cwd=cwd, timeout=timeout, check=False
        )
    theirs, ours = _pipes()
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(_door()))
            _hand_over(line, words, environ, cwd, theirs)
        finally:
            for end in theirs:
                os.close(end)
        out, err = _exchange(ours, stdin, time.monotonic() + timeout, words)
        line.settimeout(timeout)
        code = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big", signed=True)
    return subprocess.CompletedProcess(words, code, out, err)


def must_be_whole(environ: Mapping[str, str]) -> bool:
    """Whether the environment makes a difference to Python itself: what is forked has started without it."""
    return environ.get("LANG") != LANG or any(name.startswith(forked.UNLIKE) for name in environ)


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The command's ends of its three streams, and ours."""
    (reads, stdin), (out, writes), (err, writes_too) = os.pipe(), os.pipe(), os.pipe()
    return (reads, writes, writes_too), (stdin, out, err)


def _hand_over(
    line: socket.socket, words: Sequence[str], environ: Mapping[str, str], cwd: Path, streams: Sequence[int]
) -> None:
    umask = os.umask(0)
    os.umask(umask)
    variables = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in environ.items()]
    told = b"\0".join([b"%d" % umask, b"%d" % len(words), *map(os.fsencode, words), *variables])
    here = os.open(cwd, os.O_RDONLY)
    try:
        socket.send_fds(line, [len(told).to_bytes(8, "big")], [*streams, here])
    finally:
        os.close(here)
    line.sendall(told)


def _exchange(ends: Sequence[int], stdin: bytes, until: float, words: Sequence[str]) -> tuple[bytes, bytes]:
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
def _door() -> Path:
    """Where the process listens that commands are forked from; one for each process of tests, as long as it lives."""
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
