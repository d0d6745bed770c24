"""An assistant: the official client with `sealpipe mcp` as a process of its own, and the person
before it. Every byte between client and server is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from e2e.browser.chrome import Browser
from support.commands import SEALPIPE
from support.terminal import Terminal

RECORD = 'cd "$0" && tee to-server | "$@" 2>stderr | tee from-server'


class Person:
    """Who sits before the client: opens the links that it shows."""

    def __init__(self) -> None:
        self.links: list[str] = []

    async def __call__(self, _context: Any, asked: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(asked, types.ElicitRequestURLParams)
        self.links.append(asked.url)
        return types.ElicitResult(action="accept")

    def fill_in(self, browser: Browser, prompt: str, value: str) -> None:
        browser.open(self.links[-1])
        browser.press("Open the form")
        browser.type(prompt, value)
        browser.press("Seal and send")
        browser.says("Sent, and only they can read it")


@contextmanager
def assistant_of(
    terminal: Terminal, person: Person, record: Path, **environ: str
) -> Iterator[tuple[BlockingPortal, Client]]:
    server = StdioServerParameters(
        command="sh",
        args=["-c", RECORD, str(record), *map(str, SEALPIPE), "mcp"],
        env={**terminal.with_environ({}), **environ},
    )
    client = Client(stdio_client(server), elicitation_callback=person)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        yield portal, entered
