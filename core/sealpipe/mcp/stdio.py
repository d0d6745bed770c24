"""Serves one client on stdin and stdout.

Messages are lines of JSON, and nothing else gets to stdout.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self

import anyio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from sealpipe.mcp.server import make_server

if TYPE_CHECKING:
    from sealpipe.mcp.server import Setup

MAX_LINE: Final = 1024 * 1024
"""Most characters of one message, without its newline."""
_REFUSED: Final = "{}\n"
"""What the SDK gets in place of what it would not refuse itself: JSON that is no message."""
_NO_JSON: Final = types.ErrorData(
    code=types.PARSE_ERROR, message="the line is not JSON: a message is one line of JSON"
)
_NO_MESSAGE: Final = types.ErrorData(
    code=types.INVALID_REQUEST, message="the line is no JSON-RPC message of at most 1 MiB"
)


async def serve_stdio(setup: Setup) -> None:
    """Serve until the client closes stdin.

    Meanwhile, stdin is empty for all others, and stdout is stderr.
    """
    server = make_server(setup)
    lines = BoundedLines(_claim_stdin(), encoding="utf-8", errors="replace")
    async with stdio_server(anyio.wrap_file(lines)) as (reading, writing):
        messages = AnsweredMessages(reading.receive, writing.send, reading.aclose)
        await server.run(messages, writing, server.create_initialization_options())


class AnsweredMessages:
    """The client's messages. A line that is none is answered with an error, whose id is null; a
    blank line is skipped.
    """

    def __init__(
        self,
        receive: Callable[[], Awaitable[SessionMessage | Exception]],
        send: Callable[[SessionMessage], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._receive = receive
        self._send = send
        self._close = close

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises anyio.EndOfStream after the last."""
        while isinstance(message := await self._receive(), Exception):
            error = _find_error(message)
            if error is not None:
                await self._send(
                    SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error))
                )
        return message

    async def aclose(self) -> None:
        """Close the stream."""
        await self._close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _find_error(failure: Exception) -> types.ErrorData | None:
    """Return the error for a line that is no message, by the SDK's reason. It quotes nothing."""
    details = failure.errors()[0] if isinstance(failure, ValidationError) else None
    if details is None or details["type"] != "json_invalid":
        return _NO_MESSAGE
    return _NO_JSON if str(details["input"]).strip() else None


class BoundedLines(io.TextIOWrapper):
    """Lines of text. Read as no message: one that is too long, which is never in memory, and a
    request whose id is no text or number, which the SDK would take for a notification.
    """

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]  # there is one limit
        """Return the next line; empty at the end."""
        line = super().readline(MAX_LINE + 1)
        if line.endswith("\n") or len(line) <= MAX_LINE:
            return _REFUSED if _has_wrong_id(line) else line
        while line and not line.endswith("\n"):
            line = super().readline(MAX_LINE)
        return _REFUSED


def _has_wrong_id(line: str) -> bool:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(message, dict)
        and {"id", "method"} <= message.keys()
        and type(message["id"]) not in (str, int)
    )


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
