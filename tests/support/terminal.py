"""A user at a terminal, in a home of their own, with an environment that inherits nothing; and the
service they use.

The fixtures: one rehearsal service for a folder's tests, forgotten between them, and the user's
terminal.
"""

from __future__ import annotations

import json
import os
import pty
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.commands import LANG, SEALPIPE, run

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
    """Where a user types commands.

    `here` is the working directory, `home` the home, both empty at first.
    """

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

    def start(
        self, *words: str, environ: Mapping[str, str | None] | None = None
    ) -> subprocess.Popen[str]:
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

    def sealpipe(
        self,
        *words: str,
        stdin: str | bytes = b"",
        machine: Path | None = None,
        apart: bool = False,
        tracer: Sequence[str] = (),
        **environ: str | None,
    ) -> Done:
        """Run `sealpipe WORDS` to its end (see `support.commands.run`).

        Keyword arguments change the environment, None takes a name away.
        """
        typed = stdin.encode() if isinstance(stdin, str) else stdin
        changed = self.with_environ(environ)
        how = {"machine": machine, "apart": apart, "tracer": tracer}
        return Done.of(
            run(words, stdin=typed, environ=changed, cwd=self.here, timeout=PATIENCE, **how)
        )

    def on_a_terminal(self, *words: str, **environ: str) -> str:
        """What a person sees of `sealpipe WORDS`, which ends with 0, on a real pseudo-terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*SEALPIPE, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.with_environ(environ),
            cwd=self.here,
        )
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:
            pass  # the other side is closed
        finally:
            os.close(ours)
        assert process.wait(PATIENCE) == 0, seen
        return seen.decode().replace("\r\n", "\n")

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
    return {
        field.key: field.value if isinstance(field.value, str) else field.value.reveal()
        for field in fields
    }


def created(service: RunningService) -> list[dict[str, Any]]:
    """The bodies of every create that the service received."""
    sent = [seen for seen in service.seen() if (seen.method, seen.target) == ("POST", "/v1/shares")]
    return [json.loads(seen.body) for seen in sent]


def ends(pid: int) -> bool:
    """Whether a process ends soon, or has.

    One that has ended, and nobody has waited for, does not run either.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] == b"Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


class _File(Protocol):
    def fileno(self) -> int: ...


End = TypeVar("End", bound="int | _File")


def readable(ends: Iterable[End], seconds: float | None = None) -> list[End]:
    """Those with something to read, once there is one, or none after so many seconds."""
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ, end)
        return [key.data for key, _ in selector.select(seconds)]


@pytest.fixture(scope="session")
def one_service() -> Iterator[RunningService]:
    with start(token_bytes=_draw_bytes) as running:
        yield running


def _draw_bytes(length: int) -> bytes:
    """What becomes a short code; none begins with a dash or an underscore: those have tests of
    their own.
    """
    drawn = secrets.token_bytes(length)
    return drawn if drawn[0] >> 2 < 62 else _draw_bytes(length)


@pytest.fixture
def service(one_service: RunningService) -> RunningService:
    """A rehearsal service that has seen nothing yet."""
    one_service.reset()
    return one_service


@pytest.fixture
def extended(service: RunningService) -> Iterator[RunningService]:
    """The same with what the specification does not show, as `--extended` offers it."""
    service.service.extended = True
    yield service
    service.service.extended = False


@pytest.fixture
def bare(tmp_path: Path) -> Terminal:
    """A terminal where nothing of sealpipe is set."""
    return Terminal(tmp_path)


@pytest.fixture
def user(bare: Terminal, service: RunningService) -> Terminal:
    """A terminal whose settings are at the service, with a key that has every scope and custody
    `self`.
    """
    return bare.at(service)


def refusal(response: httpx.Response) -> tuple[int, int]:
    """Status and error_code, once the envelope is found to be the flat one (specification: Response
    envelopes).
    """
    envelope = response.json()
    assert envelope["success"] is False
    assert isinstance(envelope["message"], str)
    assert envelope.keys() <= {"success", "message", "error_code", "additional_data"}
    return response.status_code, envelope["error_code"]
