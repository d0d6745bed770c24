"""Runs a command for a program.

Without a terminal and without input, its output redacted and returned as text.

The command leads a session of its own. It ends by itself, or is ended when its time is up, when it
writes too much, or when the caller stops it; in any case, nothing of its session is left running.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from sealpipe.run.program import refuse_command, to_exit_code
from sealpipe.run.redaction import Redactor
from sealpipe.run.streams import CHUNK, GRACE, LAST
from sealpipe.spellings import Finder

MAX_READ: Final = 64 * 1024 * 1024
"""Bytes of output after which a command is ended."""
_PATIENCE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL, and then until its end counts as unknown: a program may have
another user.
"""
_POLL: Final = 0.1
"""Seconds between looks at the command, on a system that cannot tell when it ends."""
_PROCESSES: Final = Path("/proc")

Ending = Literal["exited", "timeout", "too much output", "stopped"]


class Captured(NamedTuple):
    """How a command ended, and what it wrote.

    `exit_code` is 128+N after signal N, ours too; None if it could not be ended.
    """

    exit_code: int | None
    ending: Ending
    stdout: str
    stderr: str
    is_truncated: bool


class Stop:
    """Stops a command from another thread, once it runs or before.

    Closed by leaving its `with` block.
    """

    def __enter__(self) -> Self:
        self._end, self._start = os.pipe()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        os.close(self._start)

    def __call__(self) -> None:
        os.write(self._start, b"!")

    def fileno(self) -> int:
        """Return what is readable once it was called."""
        return self._end


class Excerpt:
    """The beginning and the end of a stream, of which at most `longest` characters are returned."""

    def __init__(self, longest: int) -> None:
        self._half = longest // 2
        self._size = 4 * self._half  # a character has at most four bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._is_cut = False

    def add(self, data: bytes) -> None:
        """Add what comes next."""
        room = self._size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._size:
            del self._tail[: -self._size]
            self._is_cut = True

    def read(self) -> tuple[str, bool]:
        """Return the text, and whether something was left out in the middle."""
        first, last = self._head, self._tail
        if not self._is_cut:
            first = last = self._head + self._tail
        start, end = (part.decode(errors="replace") for part in (first, last))
        if not self._is_cut and len(start) <= 2 * self._half:
            return start, False
        return f"{start[: self._half]}\n[...]\n{end[-self._half :]}", True


class _Pipe:
    """One stream of the command: what it writes is redacted, and an excerpt of it stays."""

    def __init__(self, source: int, finder: Finder, longest: int) -> None:
        self.source = source
        self.excerpt = Excerpt(longest)
        self._redactor = Redactor(finder)
        os.set_blocking(source, False)

    def read(self) -> int | None:
        """Read what is there, and return how many bytes; None at the end."""
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return 0
        self.excerpt.add(self._redactor.feed(data))
        return len(data) or None

    def finish(self) -> None:
        """Read what was written before the end, and no more."""
        for _ in range(LAST // CHUNK):
            if not self.read():
                break
        self.excerpt.add(self._redactor.finish())


def capture_command(
    program: str,
    argv: Sequence[str],
    environ: Mapping[bytes, bytes],
    finder: Finder,
    *,
    seconds: float,
    longest: int,
    stop: Stop,
) -> Captured:
    """Run a program with exactly this environment for at most `seconds`, and return its output.

    Blocks.

    Of each stream, at most `longest` characters are returned. UsageError if it cannot be started.
    """
    with ExitStack() as stack:
        ends = [os.pipe(), os.pipe()]
        try:
            # The policy allows the command, and there is no shell.
            process = subprocess.Popen(  # noqa: S603
                argv,
                executable=program,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=ends[0][1],
                stderr=ends[1][1],
                start_new_session=True,
            )
        except OSError as error:
            for reading, _ in ends:
                os.close(reading)
            refuse_command(argv[0], error)
        finally:
            for _, writing in ends:
                os.close(writing)
        pipes = [_Pipe(reading, finder, longest) for reading, _ in ends]
        for pipe in pipes:
            stack.callback(os.close, pipe.source)
        run = _Run(process, pipes, stop)
        try:
            ending = run.follow(seconds)
        finally:
            code = run.kill()
        for pipe in pipes:
            pipe.finish()
        (stdout, is_cut), (stderr, is_cut_too) = [pipe.excerpt.read() for pipe in pipes]
        exit_code = None if code is None else to_exit_code(code)
        return Captured(exit_code, ending, stdout, stderr, is_cut or is_cut_too)


class _Run:
    """A command that runs, and the streams that it writes."""

    def __init__(
        self, process: subprocess.Popen[bytes], pipes: Sequence[_Pipe], stop: Stop
    ) -> None:
        self._process = process
        self._pipes = pipes
        self._stop = stop
        self._left = MAX_READ

    def follow(self, seconds: float) -> Ending:
        """Read what it writes until it has ended; then, for a moment, what its children write.

        Else tell it to end.
        """
        with selectors.DefaultSelector() as selector, ExitStack() as stack:
            for pipe in self._pipes:
                selector.register(pipe.source, selectors.EVENT_READ, pipe)
            selector.register(self._stop, selectors.EVENT_READ, "stopped")
            watch = self._watch_end()
            if watch is not None:
                stack.callback(os.close, watch)
                selector.register(watch, selectors.EVENT_READ, "exited")
            ending = self._read(selector, seconds, is_polling=watch is None)
            selector.unregister(self._stop)
            if ending == "exited":
                if watch is not None:
                    selector.unregister(watch)
                self._read(selector, GRACE)
            else:
                self._signal(signal.SIGTERM)
                self._left = MAX_READ
                self._read(selector, _PATIENCE, is_polling=watch is None)
            return ending

    def _read(
        self, selector: selectors.BaseSelector, seconds: float, *, is_polling: bool = False
    ) -> Ending:
        """Read until something else than output happens, nothing can come, or the time is up."""
        end = time.monotonic() + seconds
        while selector.get_map() and (left := end - time.monotonic()) > 0:
            for key, _ in selector.select(min(left, _POLL) if is_polling else left):
                if not isinstance(key.data, _Pipe):
                    ending: Ending = key.data
                    return ending
                size = key.data.read()
                if size is None:
                    selector.unregister(key.fd)
                self._left -= size or 0
            if self._left < 0:
                return "too much output"
            if is_polling and self._process.poll() is not None:
                return "exited"
        return "timeout"

    def _watch_end(self) -> int | None:
        """Return a descriptor that is readable once the command has ended, even if not reaped."""
        try:
            return os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            return None

    def kill(self) -> int | None:
        """Kill what is left of its session, and return its status; None if it does not end.

        Until we wait for it, its number is taken, and so nobody else is hit.
        """
        self._signal(signal.SIGKILL)
        try:
            return self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    def _signal(self, number: signal.Signals) -> None:
        leader, done = self._process.pid, set[int]()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
        while more := list_family(leader) - done:
            done |= more
            for pid in more:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def list_family(leader: int) -> set[int]:
    """Return the processes of a session but its leader, and all that descend from them.

    Empty where /proc is not.
    """
    found = {pid: (parent, session) for pid, parent, session in _list_processes()}
    family = {leader, *(pid for pid, (_, session) in found.items() if session == leader)}
    while more := {pid for pid, (parent, _) in found.items() if parent in family} - family:
        family |= more
    return family - {leader}


def _list_processes() -> Iterator[tuple[int, int, int]]:
    """Yield each process with its parent and its session."""
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The name of the program, in parentheses, may hold anything.
            _, parent, _, session = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:4]
            yield int(folder.name), int(parent), int(session)
