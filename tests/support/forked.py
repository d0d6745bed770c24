"""`sealpipe` without its start: each command a process of its own, forked from one that has
imported what it imports.

A start costs 0.2 s of CPU, nearly all of it for imports, and the tests make thousands of commands.
Whoever tests a start, watches it from outside or sends it signals starts it whole
(`support.commands.SEALPIPE`).

What waits before a retry does not wait here (`retry_at_once`): the tests of backoff have a clock of
their own.

Two processes take part beside the test's own: `serve` imports, listens, forks, and kills a command
where nobody waits for it any longer. The test hands over streams, folder, environment and words
itself (`support.commands.run`).
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

UNLIKE = ("PYTHON", "LC_", "LD_", "OPENSSL")
"""Variables that count before a process can change them: with one of these it has to be a whole
start.
"""

_PR_SET_PTRACER = 0x59616D61
_ANY = 2**64 - 1


def serve(door: str) -> None:
    """Listen until standard input ends.

    Returns in the process of a command, when everything is as it was called.
    """
    _import()
    # what is imported is not looked through again, in every process, until its very end; nor is
    # the little that a command makes, again and again
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    running: dict[
        int, tuple[int, socket.socket]
    ] = {}  # by a descriptor that is readable when the process has ended
    waiting: dict[socket.socket, int] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{door}.new")
        listener.listen(64)
        os.rename(f"{door}.new", door)  # noqa: PTH104 - nothing is imported that no command imports
        while True:
            ready, _, _ = select.select([listener, 0, *running, *waiting], [], [])
            for ended in running.keys() & set(ready):
                waiting.pop(running[ended][1], None)
                _tell(ended, *running.pop(ended))
            for line in waiting.keys() & set(ready):
                os.kill(waiting.pop(line), signal.SIGKILL)  # whoever called is gone
            if 0 in ready:
                for process, _ in running.values():
                    os.kill(process, signal.SIGKILL)
                os._exit(0)
            if listener not in ready:
                continue
            line, _ = listener.accept()
            told, streams = _receive(line)
            command = os.fork()
            if command == 0:
                for end in (line, *(each for _, each in running.values())):
                    end.close()
                for descriptor in running:
                    os.close(descriptor)
                break
            for stream in streams:
                os.close(stream)
            running[os.pidfd_open(command)] = (command, line)
            waiting[line] = command
    _become(told, streams)


def retry_at_once() -> None:
    """Take the wait out of retries: a backoff is a random part of its bound, and the smallest part
    is nothing.
    """
    from functools import wraps

    from sealpipe.budget import Budget

    draw_backoff = Budget.draw_backoff

    @wraps(draw_backoff)
    def draw_smallest(budget: Budget, tries: int) -> float:
        budget.draw = budget.draw or (lambda: 0.0)
        return draw_backoff(budget, tries)

    Budget.draw_backoff = draw_smallest  # type: ignore[method-assign]


def print_at_once() -> None:
    """Let a value follow its masks at once: nobody reads these streams in turns.

    Whole starts wait (test_printing).
    """
    from sealpipe.cli import disclosure

    disclosure.MASK_DELAY = 0.0  # type: ignore[misc]


def _import() -> None:
    """Whatever of ours a command may import, which it does at different moments, and what that
    imports first.
    """
    from importlib import import_module
    from pkgutil import walk_packages

    import sealpipe
    from sealpipe.__main__ import block_modules

    block_modules()
    for module in walk_packages(sealpipe.__path__, "sealpipe."):
        # The second is imported already; the last needs packages that most commands never load.
        if not module.name.startswith(
            (
                "sealpipe.testing",
                "sealpipe.__main__",
                "sealpipe.batch.database.postgres",
            )
        ):
            import_module(module.name)
    for name in (
        "cryptography.hazmat.primitives.ciphers.aead",
        "encodings.utf_8_sig",
        "importlib.metadata",
    ):
        import_module(name)


def _receive(line: socket.socket) -> tuple[list[bytes], list[int]]:
    head, streams, _, _ = socket.recv_fds(line, 8, 5)
    told = _exactly(line, int.from_bytes(head, "big")).split(b"\0")
    return told, streams


def _tell(ended: int, process: int, line: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(ended)
    with line, suppress(OSError):
        line.sendall(code.to_bytes(4, "big", signed=True))


def _become(told: list[bytes], streams: list[int]) -> None:
    umask, before, number_of_words, *rest = told
    words, environ = rest[: int(number_of_words)], rest[int(number_of_words) :]
    stdin, out, err, *gate, folder = streams
    for number, stream in enumerate((stdin, out, err)):
        os.dup2(stream, number)
    os.fchdir(folder)
    for stream in (stdin, out, err, folder):
        os.close(stream)
    os.umask(int(umask))
    os.environb.clear()
    for each in environ:
        name, _, value = each.partition(b"=")
        os.environb[name] = value
    time.tzset()
    sys.argv = [sys.argv[0], *(os.fsdecode(word) for word in words)]
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it
    if gate:
        _wait_for_tracer(*gate)
    else:
        retry_at_once()
        print_at_once()
    exec(before, {})  # noqa: S102 - a test's own


def _wait_for_tracer(gate: int) -> None:
    """Tell who this is, and wait until its system calls are watched: all of its own are."""
    import ctypes

    # Debian and Ubuntu let only an ancestor watch a process that does not ask for more.
    sys.dont_write_bytecode = True  # no file of its own but what sealpipe makes
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANY), 0, 0, 0)
    os.write(gate, b"%d" % os.getpid())
    os.read(gate, 1)
    os.close(gate)


@contextmanager
def traced(tracer: Sequence[str], gate: socket.socket) -> Iterator[None]:
    """Watch a command that waits at the other end, and let it go on.

    Once the block has ended, nothing is unwritten.
    """
    import subprocess

    words = [word for word in tracer if word != "-qq"]  # it tells when it has begun
    process = gate.recv(16).decode()
    with subprocess.Popen([*words, "-p", process], stderr=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stderr
            said = watching.stderr.readline()
            assert "attached" in said, said
            gate.sendall(b"x")
            yield
            watching.communicate()
        finally:
            watching.terminate()


def _exactly(line: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        more = line.recv(length - len(found))
        if not more:
            os._exit(70)
        found += more
    return found


def _leave(code: object) -> None:
    """End as Python ends, but for what it clears of its own memory, which takes longer than most
    commands.
    """
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # it waits for threads
    atexit._run_exitfuncs()
    if isinstance(code, int) or code is None:
        # Python itself has more to say of a stream that takes nothing.
        with suppress(OSError, ValueError):
            for stream in (sys.stdout, sys.stderr):
                if stream:
                    stream.flush()
            os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    serve(sys.argv[1])
    from sealpipe.__main__ import main

    try:
        main()
        _leave(0)
    except SystemExit as end:
        _leave(end.code)
        raise
