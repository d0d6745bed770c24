"""uvicorn on a loopback socket: where it listens, how it is set up, which signals end it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

import uvicorn

from .service.app import build
from .service.context import Service
from .uvicorn_connection import SERVER_KEY, FaultConnection

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Address:
    """Where a service answers, and what is derived from that."""

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
    """uvicorn that tells when it answers, and leaves the process's signals to whoever runs it."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self.ended_by_signal = 0
        self._announce = announce
        self._loop: asyncio.AbstractEventLoop | None = None
        self._address: tuple[str, int] | None = None
        self._reserved_socket: socket.socket | None = None
        self._listen_timer: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        self._loop = asyncio.get_running_loop()
        self.lifespan.state[SERVER_KEY] = self
        for sock in sockets or []:
            self._address = sock.getsockname()[:2]
        await super().startup(sockets)
        self.ready.set()
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; a port that was only kept is given back."""
        self._cancel_timer()
        if self._reserved_socket is not None:
            self._reserved_socket.close()
        await super().shutdown(sockets)

    def refuse(self, seconds: float | None = None) -> None:
        """Refuse connections from now on, for so long or until `listen`; those that are open stay. In the loop alone.

        A socket that is bound and does not listen keeps the port from whoever asks for any that is free.
        """
        self._cancel_timer()
        if self._reserved_socket is None and self._address is not None:
            for server in self.servers:
                for sock in server.sockets:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            # Bound before the other is closed: in between, anybody could be given the port.
            self._reserved_socket = listen(*self._address, share_port=True)
            for server in self.servers:
                server.close()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._listen_timer = loop.call_later(seconds, lambda: loop.create_task(self.listen()))

    async def listen(self) -> None:
        """Take connections again. In the loop alone."""
        self._cancel_timer()
        reserved, self._reserved_socket = self._reserved_socket, None
        if reserved is not None:
            await super().startup([reserved])

    def set_refusing(self, refusing: bool) -> None:  # noqa: FBT001  # one question
        """Have the loop refuse connections, or take them again; returns once that is so. From any other thread."""

        async def change() -> None:
            if refusing:
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
        """None: uvicorn would raise them again once it has ended, which kills the process."""
        yield


@contextlib.contextmanager
def end_on_signals(server: Server) -> Iterator[None]:
    """SIGINT and SIGTERM end the server in good order; a second one does not wait for open calls."""

    def end(number: int, _: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
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


def make_config(service: Service) -> uvicorn.Config:
    """uvicorn's settings: HTTP/1.1 and nothing else, no signature, no log lines of its own."""
    return uvicorn.Config(
        build(service),
        http=FaultConnection,
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,  # the service dates its answers by its own clock
        # Longer than a client's pool keeps a connection, so that none is closed under a request.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=3,
    )


def listen(host: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A bound socket, on loopback and nowhere else: the service has a door without a lock.

    `beside` another of ours at that port, which allows it (SO_REUSEPORT).
    """
    if host not in (LOOPBACK, "::1"):
        raise ValueError(f"the rehearsal service listens on 127.0.0.1 or ::1 only, not on {host}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio sets TCP_NODELAY only where it stands, and without it each answer to a
    # kept connection waits 40 ms for an acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
    except BaseException:
        sock.close()
        raise
    return sock
