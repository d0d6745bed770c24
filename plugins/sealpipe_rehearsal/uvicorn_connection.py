"""uvicorn's HTTP/1.1 connection with raw access, for faults that send no valid HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .fault_exchange import CONNECTION_KEY

SERVER_KEY = "sealpipe_rehearsal.server"
"""Key of the server in an ASGI scope's `state`."""

_RST = struct.pack("ii", 1, 0)  # linger for 0 seconds


class FaultConnection(H11Protocol):
    """A `RawConnection`, which a request finds in `scope["state"][CONNECTION_KEY]`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._closed = asyncio.Event()
        self._taken_over = False
        self.app_state = {**self.app_state, CONNECTION_KEY: self}

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake faults that wait for the client to disconnect."""
        super().connection_lost(exc)
        self._closed.set()

    def shutdown(self) -> None:
        """Close on shutdown; a running fault is aborted."""
        if self._taken_over:
            self.transport.abort()
        else:
            super().shutdown()

    def write(self, data: bytes) -> None:
        """Send bytes, bypassing the HTTP server."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def take_over(self) -> None:
        """Make uvicorn believe that the client has disconnected, so that it sends nothing more."""
        self._taken_over = True
        self.cycle.disconnected = True

    def close(self) -> None:
        """Close the connection once everything written has been sent."""
        self.transport.close()

    def reset(self) -> None:
        """Reset the connection (RST)."""
        with contextlib.suppress(OSError):  # the client has closed the connection
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RST
            )
        self.transport.abort()

    async def drain(self) -> None:
        """Wait until the client has read most of what was written, or has disconnected."""
        await asyncio.sleep(0)
        await self.flow.drain()

    async def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the client disconnects, at most some seconds; return whether it has."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)
        return self._closed.is_set()

    def refuse(self, seconds: float) -> None:
        """Refuse new connections to the server for some seconds."""
        self.app_state[SERVER_KEY].refuse(seconds)
