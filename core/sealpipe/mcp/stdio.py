"""Serves one client on stdin and stdout.

Messages are lines of JSON, and nothing else gets to stdout.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, Final

import anyio
from mcp.server.stdio import stdio_server

from sealpipe.mcp.server import make_server

if TYPE_CHECKING:
    from sealpipe.mcp.server import Setup

MAX_LINE: Final = 1024 * 1024
"""Most characters of one message."""
_REFUSED: Final = "{}\n"
"""What the SDK gets in place of a longer one: no message."""


async def serve_stdio(setup: Setup) -> None:
    """Serve until the client closes stdin.

    Meanwhile, stdin is empty for all others, and stdout is stderr.
    """
    server = make_server(setup)
    lines = BoundedLines(_claim_stdin(), encoding="utf-8", errors="replace")
    async with stdio_server(anyio.wrap_file(lines)) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class BoundedLines(io.TextIOWrapper):
    """Lines of text: one that is too long is never in memory, and is read as no message."""

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]  # there is one limit
        """Return the next line; empty at the end."""
        line = super().readline(MAX_LINE)
        if line.endswith("\n") or len(line) < MAX_LINE:
            return line
        while line and not line.endswith("\n"):
            line = super().readline(MAX_LINE)
        return _REFUSED


def _claim_stdin() -> BinaryIO:
    """Return what was stdin, which is empty from now on.

    What a tool starts must not read the client's messages.
    """
    sys.stdin.flush()
    messages = os.fdopen(os.dup(0), "rb", closefd=False)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return messages
