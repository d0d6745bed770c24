"""A user at a terminal: real processes, in a home of their own, with an environment that inherits nothing.

`sealpipe` is started whole, or forked from a process that has imported it already (`support.forked`).
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sealpipe_rehearsal.running_service import RunningService
from support import (
    forked,
)

ABROAD = {"SEALPIPE_LINK_BASE_URL": "https://share.example"}
"""Links that are no rehearsal's."""
PATIENCE = 60
"""Seconds after which a process that hangs fails its test."""


@dataclass(frozen=True)
class Done:
    """A process that ended: its exit code and its streams."""

    code: int
    out: str
    err: str

    @classmethod
    def of(cls, process: subprocess.CompletedProcess[bytes]) -> Done:
        return cls(process.returncode, process.stdout.decode(), process.stderr.decode())

    @property
    def json(self) -> Any:
        """stdout, which is one line of JSON and nothing else."""
        assert self.out.endswith("\n"), self
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error object: the last line of stderr, with `schema` first."""
        told = json.loads(self.err.splitlines()[-1])
        assert list(told) == ["schema", "error"], told
        assert told["schema"] == 1
        return told["error"]  # type: ignore[no-any-return]


class Terminal:
    """Where a user types commands. `here` is the working directory, `home` the home, both empty at first."""

    def __init__(self, place: Path, **environ: str) -> None:
        self.home = place / "home"
        self.here = place / "work"
        self.tmp = place / "tmp"
        for folder in (self.home, self.here, self.tmp):
            folder.mkdir(parents=True)
        self.environ = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "LANG": LANG,
            **environ,
        }

    def at(self, service: RunningService, **key: Any) -> Terminal:
        """Point SEALPIPE_* at a service, with a new key there. Returns itself."""
        self.environ |= addresses(service)
        self.environ["SEALPIPE_API_KEY"] = service.create_key(**key).reveal()
        return self

    def with_environ(self, environ: Mapping[str, str | None]) -> dict[str, str]:
        """The environment with some variables changed; None takes one away."""
        changed = {**self.environ, **environ}
        return {name: value for name, value in changed.items() if value is not None}

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: str | bytes = b"",
        environ: Mapping[str, str | None] | None = None,
    ) -> Done:
        """Run a program to its end."""
        done = subprocess.run(
            command,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.with_environ(environ or {}),
            cwd=self.here,
            timeout=PATIENCE,
            check=False,
        )
        return Done.of(done)

    def start(self, *words: str, environ: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
        """Start `sealpipe WORDS`, its streams to be read as it runs."""
        return subprocess.Popen(
            [*SEALPIPE, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.with_environ(environ or {}),
            cwd=self.here,
            text=True,
        )

    def sealpipe(self, *words: str, stdin: str | bytes = b"", before: str = "", **environ: str | None) -> Done:
        """Run `sealpipe WORDS` to its end; keyword arguments change the environment, None takes a name away."""
        typed = stdin.encode() if isinstance(stdin, str) else stdin
        changed = self.with_environ(environ)
        return Done.of(run(words, stdin=typed, environ=changed, cwd=self.here, timeout=PATIENCE, before=before))

    def file(self, name: str, content: str | bytes, mode: int = 0o600) -> Path:
        """A file in the working directory (or wherever an absolute name says)."""
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def outbox(self) -> list[Path]:
        """The files in the outbox, of a user who sets nothing."""
        return sorted((self.home / ".local/state/sealpipe/outbox").glob("*"))


def addresses(service: RunningService) -> dict[str, str]:
    """Where a service is, as settings."""
    return {"SEALPIPE_BASE_URL": service.base_url, "SEALPIPE_LINK_BASE_URL": service.link_base_url}


def opened(service: RunningService, link: str, passcode: str | None = None) -> dict[str, str]:
    """What the recipient of a link sees: label to value."""
    fields = service.recipient().open_link(link.rstrip("\n"), passcode)
    return {field.key: field.value if isinstance(field.value, str) else field.value.reveal() for field in fields}


def created(service: RunningService) -> list[dict[str, Any]]:
    """The bodies of every create that the service received."""
    sent = [seen for seen in service.seen() if (seen.method, seen.target) == ("POST", "/v1/shares")]
    return [json.loads(seen.body) for seen in sent]


SEALPIPE = (sys.executable, "-m", "sealpipe")
LANG = "C.UTF-8"
_AT_ONCE = 1 << 16
_MAIN = "\nfrom sealpipe.__main__ import main\nmain()\n"


def run(
    words: Sequence[str], *, stdin: bytes, environ: Mapping[str, str], cwd: Path, timeout: float, before: str = ""
) -> subprocess.CompletedProcess[bytes]:
    """Run `sealpipe WORDS` to its end, with exactly this environment: forked wherever that makes no difference.

    `before` is Python that its process runs first.
    """
    if must_be_whole(environ):
        command = [sys.executable, "-c", before + _MAIN, *words] if before else [*SEALPIPE, *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, env=environ, cwd=cwd, timeout=timeout, check=False
        )
    theirs, ours = _pipes()
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(_door()))
            _hand_over(line, before, words, environ, cwd, theirs)
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
    told = b"\0".join([b"%d" % umask, before.encode(), b"%d" % len(words), *map(os.fsencode, words), *variables])
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


class _File(Protocol):
    def fileno(self) -> int: ...


End = TypeVar("End", bound="int | _File")


def readable(ends: Iterable[End], seconds: float | None = None) -> list[End]:
    """Those with something to read, once there is one, or none after so many seconds."""
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ, end)
        return [key.data for key, _ in selector.select(seconds)]
