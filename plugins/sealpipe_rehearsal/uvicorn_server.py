"""Runs uvicorn on a loopback socket: address, configuration, refusing connections, signals."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple

import uvicorn

from sealpipe_service import serving

from .application import build
from .rehearsed import RehearsedService
from .uvicorn_connection import SERVER_KEY, FaultConnection

LOOPBACK = "127.0.0.1"
_LONGEST_SLEEP = 1.0


class Address(NamedTuple):
    """Host and port of a service, and its URLs."""

    host: str
    port: int

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:PORT`."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"

    @property
    def base_url(self) -> str:
        """The API's address, as SEALPIPE_BASE_URL takes it."""
        return f"{self.origin}/v1"

    @property
    def link_base_url(self) -> str:
        """The links' address, as SEALPIPE_LINK_BASE_URL takes it."""
        return f"{self.origin}/s"


class Server(uvicorn.Server):
    """A uvicorn server that signals readiness and leaves signals alone."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self.ended_by_signal = 0
        self._announce = announce
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._address: tuple[str, int] | None = None
        self._reserved_socket: socket.socket | None = None
        self._listen_timer: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then announce that it is ready."""
        self._loop = asyncio.get_running_loop()
        self.lifespan.state[SERVER_KEY] = self
        for sock in sockets or []:
            self._address = sock.getsockname()[:2]
        await super().startup(sockets)
        self.ready.set()
        self._announce()

    async def main_loop(self) -> None:
        """Serve until `end`. uvicorn's own loop looks ten times a second whether it should."""
        while not self.should_exit:
            # A signal that arrives just before the loop sleeps does not wake it.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), _LONGEST_SLEEP)
        # asyncio never closes a connection that was accepted, but not begun, when its server is
        # closed.
        for server in self.servers:
            for sock in server.sockets:
                asyncio.get_running_loop().remove_reader(sock)
        for _ in range(2):
            await asyncio.sleep(0)

    def end(self) -> None:
        """End as soon as open calls are finished. Call it from any thread, or on a signal."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._end.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and release a port that was only reserved."""
        self._cancel_timer()
        if self._reserved_socket is not None:
            self._reserved_socket.close()
        await super().shutdown(sockets)

    def refuse(self, seconds: float | None = None) -> None:
        """Refuse new connections for some seconds, or until `listen`.

        Call it in the event loop only.

        Meanwhile a bound socket that does not listen reserves the port. Open connections stay.
        """
        self._cancel_timer()
        if self._reserved_socket is None and self._address is not None:
            for server in self.servers:
                for sock in server.sockets:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            # bound before the other socket is closed, so that no other process can take the port
            self._reserved_socket = listen(*self._address, share_port=True)
            for server in self.servers:
                server.close()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._listen_timer = loop.call_later(seconds, lambda: loop.create_task(self.listen()))

    async def listen(self) -> None:
        """Accept connections again. Call it in the event loop only."""
        self._cancel_timer()
        reserved, self._reserved_socket = self._reserved_socket, None
        if reserved is not None:
            await super().startup([reserved])

    def set_connection_refusal(self, enabled: bool) -> None:  # noqa: FBT001  # the only argument
        """Refuse or accept connections, and wait until that is done.

        Call it from another thread.
        """

        async def change() -> None:
            if enabled:
                self.refuse()
            else:
                await self.listen()

        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(change(), self._loop).result()

    def _cancel_timer(self) -> None:
        if self._listen_timer is not None:
            self._listen_timer.cancel()
            self._listen_timer = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals.

        uvicorn would raise them again when it ends, which would kill the process.
        """
        yield


@contextlib.contextmanager
def end_on_signals(server: Server) -> Iterator[None]:
    """Stop the server on SIGINT and SIGTERM; after a second signal, do not wait for open calls."""

    def end(number: int, _: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.end()
        server.ended_by_signal = number

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def make_config(service: RehearsedService) -> uvicorn.Config:
    """Return uvicorn's configuration."""
    return serving.make_config(
        build(service), http=FaultConnection, lifespan="off", grace_seconds=3
    )


def listen(host: str, port: int, *, share_port: bool = False) -> socket.socket:
    """Return a bound socket, on loopback only: the control API has no authentication.

    With `share_port`, it can be bound while another socket of ours has the port (SO_REUSEPORT).
    """
    if host not in (LOOPBACK, "::1"):
        raise ValueError(f"the rehearsal service listens on 127.0.0.1 or ::1 only, not on {host}")
    return serving.bind(host, port, share_port=share_port)
