"""uvicorn's HTTP/1.1 connection with a way past it: what a fault needs to say something that is not HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .service.fault_exchange import CONNECTION_KEY

SERVER_KEY = "sealpipe_rehearsal.server"
"""Where in an ASGI scope's `state` the server is."""

_RST = struct.pack("ii", 1, 0)  # linger, for no time at all


class FaultConnection(H11Protocol):
    """A `Line`: each request finds its own in `scope["state"][LINE]`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._closed = asyncio.Event()
        self._taken_over = False
        self.app_state = {**self.app_state, CONNECTION_KEY: self}

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go whatever waits for it."""
        super().connection_lost(exc)
        self._closed.set()

    def shutdown(self) -> None:
        """The service ends; a fault is not waited for."""
        if self._taken_over:
            self.transport.abort()
        else:
            super().shutdown()

    def write(self, data: bytes) -> None:
        """Send bytes past the HTTP server."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def take_over(self) -> None:
        """uvicorn has nobody left to answer: to it the client is gone."""
        self._taken_over = True
        self.cycle.disconnected = True

    def close(self) -> None:
        """End it once everything written has been sent."""
        self.transport.close()

    def reset(self) -> None:
        """Cut it with an RST."""
        with contextlib.suppress(OSError):  # the client was faster
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
        self.transport.abort()

    async def drain(self) -> None:
        """Wait until the client has taken most of it, or is gone."""
        await asyncio.sleep(0)
        await self.flow.drain()

    async def wait_closed(self, seconds: float | None = None) -> bool:
        """Wait until the client is gone, or for so long; whether it is gone."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)
        return self._closed.is_set()

    def refuse(self, seconds: float) -> None:
        """Refuse new connections for so long."""
        self.app_state[SERVER_KEY].refuse(seconds)
