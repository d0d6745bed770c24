"""`sealpipe` without its start: each command a process of its own, forked from one that has imported what it imports.

A start costs 0.2 s of CPU, nearly all of it for imports, and the tests make thousands of commands. Whoever tests a
start, watches it from outside or sends it signals starts it whole (`support.starting.SEALPIPE`).

Three processes take part. `serve` imports, listens and forks; for each command it forks a keeper, whose one child is
the command, and which kills it where nobody waits for it any longer. `call` is what a test starts in the command's
stead: it hands over its streams, folder, environment and words, and ends as the command ended.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time

UNLIKE = ("PYTHON", "LC_", "LD_", "OPENSSL")
"""Variables that count before a process can change them: with one of these it has to be a whole start."""


def call(door: str, words: list[str]) -> None:
    """Have it done, with all that is ours; end in its way."""
    here = os.open(".", os.O_RDONLY)
    umask = os.umask(0)
    environ = [name + b"=" + value for name, value in os.environb.items()]
    told = b"\0".join([b"%d" % umask, b"%d" % len(words), *map(os.fsencode, words), *environ])
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(door)
        socket.send_fds(line, [len(told).to_bytes(8, "big")], [0, 1, 2, here])
        line.sendall(told)
        # Ours would keep a pipe open that the command closes.
        for stream in (0, 1, 2):
            os.close(stream)
        code = int.from_bytes(_exactly(line, 4), "big", signed=True)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(door: str) -> None:
    """Listen until standard input ends. Returns in the process of a command, when everything is as it was called."""
    _import()
    gc.freeze()  # what is imported is not looked through again, in every process, until its very end
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{door}.new")
        listener.listen(64)
        os.rename(f"{door}.new", door)  # noqa: PTH104 - nothing is imported that no command imports
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if listener not in ready:
                os._exit(0)
            line, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return _keep(line)
            line.close()
            _reap()


def _import() -> None:
    from importlib import import_module

    from sealpipe.__main__ import block_modules
    from sealpipe.cli import COMMANDS

    block_modules()
    for place, _ in COMMANDS.values():
        import_module(place.partition(":")[0])
    import_module("sealpipe.client")


def _keep(line: socket.socket) -> None:
    """Fork the command and see to its end; returns in the command."""
    head, streams, _, _ = socket.recv_fds(line, 8, 4)
    told = _exactly(line, int.from_bytes(head, "big")).split(b"\0")
    command = os.fork()
    if command == 0:
        line.close()
        return _become(told, streams)
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    ended = os.pidfd_open(command)
    if ended not in select.select([ended, line], [], [])[0]:
        os.kill(command, signal.SIGKILL)  # whoever called was killed
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    line.sendall(code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(told: list[bytes], streams: list[int]) -> None:
    umask, number_of_words, *rest = told
    words, environ = rest[: int(number_of_words)], rest[int(number_of_words) :]
    *three, folder = streams
    for number, stream in enumerate(three):
        os.dup2(stream, number)
    os.fchdir(folder)
    for stream in streams:
        os.close(stream)
    os.umask(int(umask))
    os.environb.clear()
    for each in environ:
        name, _, value = each.partition(b"=")
        os.environb[name] = value
    time.tzset()
    sys.argv = [sys.argv[0], *(os.fsdecode(word) for word in words)]
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def _exactly(line: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        more = line.recv(length - len(found))
        if not more:
            os._exit(70)
        found += more
    return found


if __name__ == "__main__":
    if sys.argv[1] == "call":
        call(sys.argv[2], sys.argv[3:])
    serve(sys.argv[2])
    from sealpipe.__main__ import main

    main()
