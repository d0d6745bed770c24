"""An assistant that a tutorial's reader has: the official MCP client, with the servers of its
configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


class Call(Protocol):
    """Calls a tool with arguments."""

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Any: ...


@contextmanager
def started(config: Path, environ: Mapping[str, str]) -> Iterator[Call]:
    """The assistant, started in the folder of its configuration; it can neither open links nor show
    forms.
    """
    (server,) = json.loads(config.read_text(encoding="utf-8"))["mcpServers"].values()
    parameters = StdioServerParameters(**server, env=dict(environ), cwd=config.parent)
    client = Client(stdio_client(parameters))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:

        def call(tool: str, arguments: Mapping[str, Any]) -> Any:
            return portal.call(entered.call_tool, tool, dict(arguments)).structured_content

        yield call
