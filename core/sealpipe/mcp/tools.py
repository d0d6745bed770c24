"""The contract between the server and its tools, and the table of tools.

A tool says what it takes and returns (models), what a call would use (`describe`, for the policy)
and what it does (`run`). `sealpipe.mcp.server` does all the rest: it checks the arguments, asks the
policy, counts, gets a person's confirmation, and searches what goes out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from sealpipe.mcp.models import Model, Schema, check_arguments, make_schema
from sealpipe.reference import Reference, Target

if TYPE_CHECKING:
    from sealpipe.async_client import AsyncClient
    from sealpipe.config import Config

Given = TypeVar("Given", bound=Model)
Parsed = TypeVar("Parsed")


class Use(NamedTuple):
    """What a call would use, as the policy sees it. No values.

    `sources` are read, `sinks` written; `recipients` get a link. `command` with its `variables`
    would be run. `expires_in` is that of what the call would create, None if it creates nothing.
    `subject` is the short code of what the call is about, for a person who confirms it.
    """

    tool: str
    sources: tuple[Reference, ...] = ()
    sinks: tuple[Reference, ...] = ()
    recipients: tuple[Target, ...] = ()
    command: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    expires_in: timedelta | None = None
    subject: str | None = None


class Answer(NamedTuple):
    """What a tool returns: its model, of which the members that are set go out.

    Text from outside is `Untrusted` there.

    `link` is one for a person to open.

    Only a collect link may be a `link`: anyone with it can submit, and nobody can read.
    """

    content: Model
    link: str | None = None


class CallPolicy(Protocol):
    """What the server asks of a policy."""

    def allows(self, tool: str) -> bool:
        """Return whether the tool is offered at all."""

    def check(self, use: Use) -> None:
        """Check what a call would use. Raises PolicyError."""

    def confirms(self, tool: str) -> bool:
        """Return whether a person must confirm each call of the tool."""

    def per_hour(self, tool: str) -> int | None:
        """Return how many calls an hour the tool may have; None for any number."""


Report = Callable[[float, float | None, str], Awaitable[None]]


@dataclass(frozen=True)
class Call:
    """One call, as its tool sees it."""

    open_client: Callable[[], AsyncClient] = field(repr=False)
    policy: CallPolicy
    state: Path
    """The server's folder in the state directory: `mcp`."""
    client_name: str
    """What the client calls itself: escaped, at most 60 characters, and not trusted."""
    config: Config = field(repr=False)
    """The configuration of this process."""
    values: Mapping[str, Any] = field(repr=False)
    """The values of the global options."""
    send_report: Report = field(repr=False)
    publish_texts: Callable[[Iterable[str | None]], None] = field(repr=False)

    @cached_property
    def client(self) -> AsyncClient:
        """The client of the service.

        Its events name the assistant and the tool. Raises SettingError.
        """
        client = self.open_client()
        # A mail's text is a secret and has the link whole; an error with a part of its address is
        # none.
        self.publish(client.session.base_url, client.session.link_base_url)
        return client

    def publish(self, *texts: str | None) -> None:
        """Say that these texts are no secrets.

        The server knew them before somebody could submit them as values.
        """
        self.publish_texts(texts)

    async def report(self, done: float, total: float | None, message: str) -> None:
        """Send a progress notification, if the client asked for them.

        `message` is a fixed sentence of ours.
        """
        await self.send_report(done, total, message)


@dataclass(frozen=True)
class Tool(Generic[Given, Parsed]):
    """A tool.

    `arguments` checks a call before `parse`, so `parse` sees only members and types that it allows.

    `parse` raises UsageError, which quotes nothing of an argument. `describe` is pure.
    """

    name: str
    title: str
    description: str
    arguments: type[Given]
    answer: type[Model]
    parse: Callable[[Given], Parsed]
    describe: Callable[[Parsed], Use]
    run: Callable[[Call, Parsed], Awaitable[Answer]]
    is_read_only: bool = False
    is_destructive: bool = False

    @cached_property
    def schema(self) -> Schema:
        """The JSON Schema of its arguments."""
        return make_schema(self.arguments)

    @cached_property
    def output(self) -> Schema:
        """The JSON Schema of its answers."""
        return make_schema(self.answer, "serialization")

    def read(self, arguments: Mapping[str, Any]) -> Parsed:
        """Check and parse the arguments of a call.

        Raises UsageError, which quotes nothing of them.
        """
        return self.parse(check_arguments(self.arguments, arguments))


TOOLS: Final[Mapping[str, str]] = {
    "request_secret": "sealpipe.mcp.requests:REQUEST_SECRET",
    "wait_for_submission": "sealpipe.mcp.requests:WAIT_FOR_SUBMISSION",
    "collect_secret": "sealpipe.mcp.requests:COLLECT_SECRET",
    "share_secret": "sealpipe.mcp.shares:SHARE_SECRET",
    "run_with_secrets": "sealpipe.mcp.commands:RUN_WITH_SECRETS",
    "list": "sealpipe.mcp.listing:LIST",
    "status": "sealpipe.mcp.listing:STATUS",
    "expire": "sealpipe.mcp.listing:EXPIRE",
    "check": "sealpipe.mcp.checking:CHECK",
}
"""The module and the name of each tool, in the order in which clients see them."""


def load_tools() -> dict[str, Tool[Any, Any]]:
    """Load all tools, by name."""
    return {name: _load(path) for name, path in TOOLS.items()}


def _load(path: str) -> Tool[Any, Any]:
    module, _, attribute = path.partition(":")
    tool: Tool[Any, Any] = getattr(import_module(module), attribute)
    return tool
