"""A service of one's own: `sealpipe server init` and `run`, as their operator types them."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.ports import free_port
from support.terminal import PATIENCE, Done, Terminal

SERVING = "serving "


@dataclass
class OwnService:
    """A service's machine: its operator's terminal, its database, and where it is reached."""

    operator: Terminal
    database: str
    public_url: str
    exports: dict[str, str]

    def command(self, *words: str) -> Done:
        """Run `sealpipe server WORDS` on its database."""
        return self.operator.sealpipe("server", *words, "--database", self.database)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Run it, until it says that it serves."""
        where = self.public_url.partition("://")[2]
        options = ["--database", self.database, "--public-url", self.public_url]
        process = self.operator.start("server", "run", *options, "--listen", where, *words)
        assert process.stderr is not None
        said = process.stderr.readline()
        assert SERVING in said, (said, process.communicate(timeout=PATIENCE))
        return process

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run it, and stop it at the end as a machine does that shuts down."""
        process = self.start(*words)
        try:
            yield process
        finally:
            assert stop(process) == 0

    def client(self, place: Path) -> Terminal:
        """A client on another machine, with the exports that `init` printed."""
        return Terminal(place, **self.exports)


def stop(process: subprocess.Popen[str]) -> int:
    """Tell a service to stop, and return its exit code."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    return process.returncode


def make_own_service(place: Path, database: str | None = None, *words: str) -> OwnService:
    """Make the database of a service, and read what `init` prints."""
    operator = Terminal(place)
    database = database or f"sqlite:///{operator.here / 'service.db'}"
    url = f"http://127.0.0.1:{free_port()}"
    where = ["--database", database, "--public-url", url]
    done = operator.sealpipe("server", "init", *where, *words)
    assert done.code == 0, done
    return OwnService(operator, database, url, read_exports(done.out))


def read_exports(out: str) -> dict[str, str]:
    """Return what lines of `export NAME=VALUE` set."""
    lines = [shlex.split(line) for line in out.splitlines()]
    assert all(word == "export" for word, _ in lines)
    return dict(value.split("=", 1) for _, value in lines)


def list_workers(process: subprocess.Popen[str]) -> Sequence[int]:
    """Return the processes that serve for a supervisor."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in children.split()]


def wait_for(condition: object, seconds: float = PATIENCE) -> None:
    """Wait until a call returns something that is true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
