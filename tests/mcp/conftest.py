"""An assistant: the official client, at a server in this process or at `sealpipe mcp`, and all that
it received.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from sealpipe.async_client import AsyncClient
from sealpipe.config import Config
from sealpipe.mcp.server import Setup, make_server
from sealpipe.mcp.tools import TOOLS, Use
from support.commands import SEALPIPE
from support.job import Job, job, proxied, service

__all__ = ["job", "proxied", "service"]


@dataclass
class Anything:
    """A policy that allows everything, and what it was asked."""

    confirmed: frozenset[str] = frozenset()
    limit: int = 1000
    asked: list[Use] = field(default_factory=list)

    def allows(self, tool: str) -> bool:
        return tool in TOOLS

    def check(self, use: Use) -> None:
        self.asked.append(use)

    def confirms(self, tool: str) -> bool:
        return tool in self.confirmed

    def per_hour(self, tool: str) -> int:  # noqa: ARG002 - the protocol's
        return self.limit


@dataclass
class Assistant:
    """A client in its own thread.

    `received` is the text of everything that came from the server.
    """

    portal: BlockingPortal
    client: Client
    received: list[str]
    leave: Callable[[], object] = bool

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return its structured content."""
        result = self._call(tool, arguments)
        assert not result.is_error, result.structured_content
        return result.structured_content

    def fail(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that fails, and return the members of its error."""
        result = self._call(tool, arguments)
        assert result.is_error, result.structured_content
        return result.structured_content["error"]

    def round(
        self, tool: str, arguments: Any, answers: Any = None, state: str | None = None
    ) -> Any:
        """Make one round of a call, as a client of the newest protocol does, and return its
        result.
        """
        more = {"input_responses": answers, "request_state": state, "allow_input_required": True}
        result = self.portal.call(lambda: self.client.session.call_tool(tool, arguments, **more))
        self.received.append(result.model_dump_json())
        return result

    def begin(self, tool: str, **arguments: Any) -> Future[types.CallToolResult]:
        """Begin a call. `cancel()` of what is returned cancels it."""
        return self.portal.start_task_soon(self.client.call_tool, tool, arguments)

    def _call(self, tool: str, arguments: Any) -> types.CallToolResult:
        result = self.portal.call(
            lambda: self.client.call_tool(tool, arguments, progress_callback=self._note)
        )
        self.received.append(result.model_dump_json())
        assert json.loads(result.content[0].text) == result.structured_content
        return result

    def tools(self) -> list[types.Tool]:
        """List the tools."""
        result = self.portal.call(self.client.list_tools)
        self.received.append(result.model_dump_json())
        return list(result.tools)

    async def _note(self, done: float, total: float | None, message: str | None) -> None:
        self.received.append(f"{done} {total} {message}")


@dataclass
class Person:
    """Who sits before the client: answers each elicitation with the next of `answers`, and
    remembers it.
    """

    answers: list[types.ElicitResult] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    async def __call__(self, _context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        return (
            self.answers.pop(0)
            if self.answers
            else types.ElicitResult(action="accept", content={"confirm": True})
        )


@contextmanager
def connected(
    server: Any, mode: str, person: Person | None = None, name: str = "helper"
) -> Iterator[Assistant]:
    """Connect an assistant to a server: `mode` is `auto` (the newest protocol) or `legacy`."""
    received: list[str] = []
    information = types.Implementation(name=name, version="1")
    client = Client(server, mode=mode, elicitation_callback=person, client_info=information)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        yield Assistant(portal, entered, received)


def make_setup(job: Job, policy: Any = None, **options: Any) -> Setup:
    """Make a server's setup at the job's account, like `sealpipe mcp`."""
    clients: list[AsyncClient] = []

    def open_client(origin: tuple[tuple[str, str], ...]) -> AsyncClient:
        if not clients:
            address = job.terminal.environ["SEALPIPE_BASE_URL"]
            addresses = {"base_url": address, "link_base_url": job.service.link_base_url}
            known = {"api_key": job.api_key, **addresses, "deadline": timedelta(seconds=20)}
            clients.append(AsyncClient(**{**known, **options}))
        return clients[0].with_origin(*origin)

    async def close() -> None:
        while clients:
            await clients.pop().close()

    folder, take, report = job.state / "mcp", lambda _tool, _limit: None, lambda *_: None
    return Setup(policy or Anything(), take, folder, open_client, Config({}), {}, report, close)


@pytest.fixture
def anything() -> type[Anything]:
    """The policy that allows everything: `anything(confirmed=...)`."""
    return Anything


@pytest.fixture
def person() -> Person:
    """Who sits before a client that can ask them: says yes, unless `answers` say otherwise."""
    return Person()


@pytest.fixture
def client_options() -> Mapping[str, Any]:
    """More arguments of the server's client of the service."""
    return {}


@pytest.fixture
def setup_changes() -> Mapping[str, Any]:
    """What is otherwise in the server's setup."""
    return {}


@pytest.fixture
def connect(
    job: Job, client_options: Mapping[str, Any], setup_changes: Mapping[str, Any]
) -> Iterator[Callable[..., Assistant]]:
    """Connect an assistant to a server in this process: `connect(mode, person, policy)`."""
    with ExitStack() as stack:

        def connect_one(
            mode: str = "auto",
            person: Any = None,
            policy: Any = None,
            report: Any = lambda *_: None,
            **words: Any,
        ) -> Assistant:
            server = make_server(
                replace(make_setup(job, policy, **client_options), report=report, **setup_changes)
            )
            own = stack.enter_context(ExitStack())
            assistant = own.enter_context(connected(server, mode, person, **words))
            assistant.leave = own.close
            return assistant

        yield connect_one


@pytest.fixture
def over_http() -> Callable[[str, str], AbstractAsyncContextManager[Any]]:
    """Return what `connect_to` connects to at a server over HTTP: `over_http(url, token)`."""

    @asynccontextmanager
    async def open_streams(url: str, token: str) -> AsyncIterator[Any]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as line,
            streamable_http_client(url, http_client=line) as streams,
        ):
            yield streams

    return open_streams


@pytest.fixture
def connect_to() -> Iterator[Callable[..., Assistant]]:
    """Connect an assistant to another server: `connect_to(transport, mode, person)`."""
    with ExitStack() as stack:
        yield lambda *words: stack.enter_context(connected(*words))


@pytest.fixture
def start(job: Job, tmp_path: Path) -> Iterator[Callable[..., Assistant]]:
    """Start `sealpipe mcp` with a policy file, and connect an assistant to it over stdio:
    `start(policy, mode)`.

    Its process id is in `pid`, and what it writes to stderr in `stderr`, files of the folder that
    it is given.
    """
    with ExitStack() as stack:

        def start_one(
            policy: str, mode: str = "auto", person: Any = None, **environ: str
        ) -> Assistant:
            file = tmp_path / "policy.toml"
            file.write_text(policy)
            file.chmod(0o600)
            words = f"echo $$ > {tmp_path}/pid; exec {shlex.join(SEALPIPE)} mcp --policy {file}"
            errors = stack.enter_context((tmp_path / "stderr").open("a"))
            environ = {**job.terminal.environ, **environ}
            parameters = StdioServerParameters(
                command="/bin/sh", args=["-c", words], env=environ, cwd=tmp_path
            )
            return stack.enter_context(connected(stdio_client(parameters, errors), mode, person))

        yield start_one
