"""One request on its way to the service and back, as a fault has it: the connection, and what would be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.responses import Response

CONNECTION_KEY = "sealpipe_rehearsal.line"
"""Where in an ASGI scope's `state` the request's `Line` is."""

_REASONS = {200: "OK", 201: "Created"}


class RawConnection(Protocol):
    """The connection that a request came over. Whoever serves the application provides it; for its event loop alone."""

    def write(self, data: bytes) -> None:
        """Send bytes past the HTTP server."""

    def take_over(self) -> None:
        """From here on the HTTP server says nothing more in answer to this request."""

    def close(self) -> None:
        """End the connection in good order, once everything written has been sent."""

    def reset(self) -> None:
        """Cut the connection with an RST."""

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""

    async def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the client is gone, or for so many seconds; whether it is gone."""

    def refuse(self, seconds: float) -> None:
        """Refuse new connections of everybody for so many seconds."""


class Exchange:
    """A request, read to its end. `handle` carries it out."""

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
        """The service's own answer; the request is carried out when this is first called, and once."""
        if self._response is None:
            self._response = await self._handle()
        return self._response

    def end_with(self, data: bytes = b"") -> None:
        """These bytes, HTTP or not, then the end of the connection."""
        self.connection.take_over()
        self.connection.write(data)
        self.connection.close()

    def reset(self) -> None:
        """No answer: the connection is cut."""
        self.connection.take_over()
        self.connection.reset()


def head_of(response: Response) -> bytes:
    """The head of an answer as it goes over the wire, with its blank line."""
    status = response.status_code
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'As It Is')}".encode("ascii")]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"
