"""One request on its way to the service and back, as a fault has it: the connection, and what would be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from starlette.responses import Response

LINE = "sealpipe_rehearsal.line"
"""Where in an ASGI scope's `state` the request's `Line` is."""

_REASONS = {200: "OK", 201: "Created"}


class Line(Protocol):
    """The connection that a request came over. Whoever serves the application provides it; for its event loop alone."""

    def write(self, data: bytes) -> None:
        """Send bytes past the HTTP server."""

    def take(self) -> None:
        """From here on the HTTP server says nothing more in answer to this request."""

    def close(self) -> None:
        """End the connection in good order, once everything written has been sent."""

    def reset(self) -> None:
        """Cut the connection with an RST."""

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""

    async def gone(self, seconds: float | None = None) -> bool:
        """Wait until the client is gone, or for so many seconds; whether it is gone."""

    def refuse(self, seconds: float) -> None:
        """Refuse new connections of everybody for so many seconds."""


class Exchange:
    """A request, read to its end. `handle` carries it out."""

    def __init__(
        self,
        line: Line,
        handle: Callable[[], Awaitable[Response]],
        made_to_fail: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.line = line
        self.made_to_fail = made_to_fail
        self._handle = handle
        self._answer: Response | None = None

    async def answer(self) -> Response:
        """The service's own answer; the request is carried out when this is first called, and once."""
        if self._answer is None:
            self._answer = await self._handle()
        return self._answer

    def ends_with(self, data: bytes = b"") -> None:
        """These bytes, HTTP or not, then the end of the connection."""
        self.line.take()
        self.line.write(data)
        self.line.close()

    def reset(self) -> None:
        """No answer: the connection is cut."""
        self.line.take()
        self.line.reset()


def head_of(response: Response) -> bytes:
    """The head of an answer as it goes over the wire, with its blank line."""
    status = response.status_code
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'As It Is')}".encode("ascii")]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"
