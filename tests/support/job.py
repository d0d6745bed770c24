"""A CI job with an account and a key of its own at the service, a home and a state folder; and its
requests.

Requests: one method of either client, a request with its submissions, the DELETEs that arrived.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import secrets
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest

from sealpipe import AsyncClient, Client
from sealpipe.wire import keys, link
from sealpipe_rehearsal import server as rehearsal
from sealpipe_rehearsal.log import Log
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.faulty import Exchange, Fault, Faulty, passes
from support.strace import Point, Tracer, killing, only, points, tracing
from support.terminal import PATIENCE, Done, Terminal, addresses, opened


class Job:
    """`place` is a folder of the test.

    Keyword arguments make the key. `base_url`: a `Faulty`'s, in between.
    """

    def __init__(
        self, place: Path, service: RunningService, base_url: str | None = None, **key: Any
    ) -> None:
        self.service = service
        self.account = f"account-{secrets.token_hex(8)}"
        self.api_key = service.create_key(account=self.account, **key).reveal()
        # Not ASCII, and with characters that JSON, a shell and a URL each treat as theirs.
        self.secret = f'cänary "\\$ &#{secrets.token_hex(12)}'
        self.state = place / "state"
        self.terminal = Terminal(
            place,
            **addresses(service),
            SEALPIPE_API_KEY=self.api_key,
            SEALPIPE_STATE_DIR=str(self.state),
            DB_PASSWORD=self.secret,
        )
        if base_url is not None:
            self.terminal.environ["SEALPIPE_BASE_URL"] = base_url

    @property
    def outbox(self) -> Path:
        return self.state / "outbox"

    def share(self, *words: str, under: Sequence[str] = (), **environ: str | None) -> Done:
        """Run `sealpipe share` of the secret to its end, `under` another program such as strace."""
        return self.run("share", "-f", "env:DB_PASSWORD", *words, under=under, **environ)

    def resume(self, *words: str, under: Sequence[str] = (), **environ: str | None) -> Done:
        return self.run("resume", *words, under=under, **environ)

    def run(self, *words: str, under: Sequence[str] = (), **environ: str | None) -> Done:
        if not under or isinstance(under, Tracer):
            return self.terminal.sealpipe(*words, tracer=under, **environ)
        return self.terminal.run([*under, *SEALPIPE, *words], environ=environ)

    def start(
        self,
        *words: str,
        stdout: int | IO[bytes] = subprocess.PIPE,
        umask: int = -1,
        environ: Mapping[str, str | None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start `sealpipe share` (or `sealpipe WORDS`) and leave it running."""
        return subprocess.Popen(
            [*SEALPIPE, *(words or ("share", "-f", "env:DB_PASSWORD"))],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=self.terminal.with_environ(environ or {}),
            cwd=self.terminal.here,
            umask=umask,
        )

    def steps(
        self,
        log: Path,
        run: Callable[[Any], Done],
        since: str,
        names: Sequence[str] = (),
        code: int = 0,
    ) -> list[Point]:
        """The system calls of a command that nobody disturbs, from the first that mentions `since`;
        then one beyond.

        `run` runs it under what it is given. Of those names; all calls where there are none.
        """
        done = run(tracing(log))
        assert done.code == code, done
        found = points(log, since)
        return [
            *(only(found, names) if names else found),
            Point(found[-1].name, found[-1].number + 1, "never reached"),
        ]

    def killing(self, point: Point, log: Path, signal: str = "SIGKILL") -> Any:
        """What a command is run under that gets the signal at that point."""
        return killing(point, log, signal)

    def entries(self) -> list[str]:
        """The ids of the outbox's entries."""
        return (
            sorted(path.stem for path in self.outbox.glob("*.sealed"))
            if self.outbox.is_dir()
            else []
        )

    def left(self) -> list[str]:
        """Every file in the state folder but what it knows of what it created, and of custody
        levels.
        """
        files = (
            str(path.relative_to(self.state)) for path in self.state.rglob("*") if not path.is_dir()
        )
        return sorted(
            name
            for name in files
            if not re.fullmatch(r"(created|custody)/[0-9a-f]{32}\.json", name)
        )

    def shares(self) -> list[str]:
        """The short code of every share of this account that there ever was."""
        live = self.live_shares()
        ended = (
            "SELECT short_code FROM shares WHERE space = :space AND ended_at IS NOT NULL ORDER "
            "BY ended_at DESC"
        )
        return live + [
            row["short_code"]
            for row in self.service.service.database.rows(ended, {"space": self.account})
        ]

    def live_shares(self) -> list[str]:
        """The short codes of those that can still be opened."""
        connection = http.client.HTTPConnection(*self.service.address, timeout=PATIENCE)
        try:
            header = {"Authorization": f"Bearer {self.api_key.rpartition('.')[0]}"}
            connection.request("GET", "/v1/shares?limit=100", headers=header)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return [share["short_code"] for share in answer["shares"]]

    def opens(self, link: str) -> bool:
        """Whether a link shows its recipient the secret. Spends its view."""
        return opened(self.service, link) == {"DB_PASSWORD": self.secret}

    def untouched(self) -> bool:
        """Whether there is nothing where a share would have left something, beside the service and
        the state.
        """
        return True


def ended(process: subprocess.Popen[bytes]) -> Done:
    """Wait for a process that was started, and take what it wrote."""
    out, err = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, (out or b"").decode(), err.decode())


def full_pipe() -> tuple[int, int, int]:
    """A pipe that nobody reads and that takes no byte more: reading end, writing end, bytes in
    it.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    try:
        while True:
            # One byte at a time at the end: a write of a few bytes must find no room at all.
            filled += os.write(writing, b"\0" * 4096)
    except BlockingIOError:
        pass
    try:
        while True:
            filled += os.write(writing, b"\0")
    except BlockingIOError:
        pass
    os.set_blocking(writing, True)
    return reading, writing, filled


PAIR = keys.from_seed(bytes(range(32)))
MANY = 1_000_000
FIELDS = (("Password", "password"), ("Note", "multiline"))


@dataclass
class Caller:
    """Calls one method of `Client` or of `AsyncClient`; an iterator comes back as a list."""

    api_key: str
    base_url: str
    link_base_url: str
    deadline: float = 20.0
    asynchronous: bool = False

    def __call__(self, name: str, *words: Any, **options: Any) -> Any:
        arguments = {
            "api_key": self.api_key,
            "base_url": self.base_url,
            "link_base_url": self.link_base_url,
        }
        if self.asynchronous:
            return asyncio.run(self._await(arguments, name, words, options))
        with Client(**arguments, deadline=self.deadline) as client:
            found = getattr(client, name)(*words, **options)
            return list(found) if isinstance(found, Iterator) else found

    async def _await(self, arguments: dict[str, str], name: str, words: Any, options: Any) -> Any:
        async with AsyncClient(**arguments, deadline=self.deadline) as client:
            found = getattr(client, name)(*words, **options)
            return [row async for row in found] if isinstance(found, AsyncIterator) else await found


def made(job: Job, **options: Any) -> str:
    """The short code of a new request of the job's account."""
    arguments: dict[str, Any] = {
        "title": "t",
        "public_key": PAIR.public_key,
        "fields": FIELDS,
    } | options
    with client_of(job) as client:
        code: str = client.create_request(**arguments).short_code
        return code


def submitted(job: Job, code: str, *values: str) -> list[str]:
    """Somebody fills in the form, once for each value; the submissions' codes."""
    collect = link.collect_link(job.service.link_base_url, code)
    return [job.service.submitter().submit(collect, {"Password": value}) for value in values]


def client_of(job: Job) -> Client:
    """A client that talks to the service directly."""
    return Client(
        api_key=job.api_key, base_url=job.service.base_url, link_base_url=job.service.link_base_url
    )


def deletes(server: Faulty) -> int:
    """How many DELETEs arrived."""
    return sum(request.method == "DELETE" for request in server.received())


def once(fault: Fault, then: Fault = passes) -> Fault:
    """The fault the first time, another afterwards."""
    left = [fault]

    def changing(exchange: Exchange) -> None:
        (left.pop() if left else then)(exchange)

    return changing


Proxied = Callable[..., Faulty]


@pytest.fixture(scope="session")
def service() -> Iterator[RunningService]:
    """One for all files of a worker.

    Tests count the requests that it received, also after thousands of them.
    """
    with mock.patch.object(rehearsal, "Log", partial(Log, MANY)):
        running = rehearsal.start()
    with running:
        yield running


@pytest.fixture
def proxied(service: RunningService) -> Iterator[Callable[..., Faulty]]:
    """Make servers that stand before the service: `proxied(fault, ..., then=fault)`; see
    `Faulty`.
    """
    with ExitStack() as stack:

        def make(*faults: Fault, **options: Any) -> Faulty:
            return stack.enter_context(Faulty(service.address, *faults, **options))

        yield make


@pytest.fixture
def call_at(job: Job) -> Callable[..., Caller]:
    """Make a caller that talks to an address."""
    return lambda base_url, **more: Caller(job.api_key, base_url, job.service.link_base_url, **more)


@pytest.fixture
def call(call_at: Callable[..., Caller], service: RunningService) -> Caller:
    """A caller that talks to the service directly."""
    return call_at(service.base_url)


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    """A job that talks to the service directly."""
    return Job(tmp_path, service)


@pytest.fixture
def job_at(service: RunningService, tmp_path: Path) -> Callable[..., Job]:
    """Make a job that talks to a `Faulty`; keyword arguments make its key."""
    return lambda server, **key: Job(tmp_path, service, server.base_url, **key)
