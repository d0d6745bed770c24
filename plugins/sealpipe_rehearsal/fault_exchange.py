"""One request under a fault: its connection and the service's own response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.responses import Response

CONNECTION_KEY = "sealpipe_rehearsal.line"
"""Key of the request's `RawConnection` in an ASGI scope's `state`."""

_REASONS = {200: "OK", 201: "Created"}


class RawConnection(Protocol):
    """A request's connection, provided by the server. Use it in the event loop only."""

    def write(self, data: bytes) -> None:
        """Send bytes, bypassing the HTTP server."""

    def take_over(self) -> None:
        """Stop the HTTP server from sending anything more for this request."""

    def close(self) -> None:
        """Close the connection once everything written has been sent."""

    def reset(self) -> None:
        """Reset the connection (RST)."""

    async def drain(self) -> None:
        """Wait until the client has read most of what was written, or has disconnected."""

    async def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the client disconnects, at most `seconds`; return whether it has."""

    def refuse(self, seconds: float) -> None:
        """Refuse new connections to the service for some seconds."""


class Exchange:
    """A fully read request. `handle` processes it."""

    def __init__(
        self,
        connection: RawConnection,
        handle: Callable[[], Awaitable[Response]],
        next_call_fails: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.connection = connection
        self.next_call_fails = next_call_fails
        self._handle = handle
        self._response: Response | None = None

    async def response(self) -> Response:
        """Return the service's own response.

        The first call processes the request; later calls return the same.
        """
        if self._response is None:
            self._response = await self._handle()
        return self._response

    def end_with(self, data: bytes = b"") -> None:
        """Send bytes, HTTP or not, then close the connection."""
        self.connection.take_over()
        self.connection.write(data)
        self.connection.close()

    def reset(self) -> None:
        """Reset the connection without a response."""
        self.connection.take_over()
        self.connection.reset()


def head_of(response: Response) -> bytes:
    """Return the head of a response as bytes, with its blank line."""
    status = response.status_code
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'As It Is')}".encode("ascii")]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"
