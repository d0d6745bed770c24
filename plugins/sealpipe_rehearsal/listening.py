"""uvicorn on a loopback socket: where it listens, how it is set up, which signals end it."""

from __future__ import annotations

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
        self.ended_by = 0
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        self.ready.set()
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: uvicorn would raise them again once it has ended, which kills the process."""
        yield


@contextlib.contextmanager
def ended_by_signals(server: Server) -> Iterator[None]:
    """SIGINT and SIGTERM end the server in good order; a second one does not wait for open calls."""

    def end(number: int, _: FrameType | None) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        server.ended_by = number

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def config_of(service: Service) -> uvicorn.Config:
    """uvicorn's settings: HTTP/1.1 and nothing else, no signature, no log lines of its own."""
    return uvicorn.Config(
        build(service),
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # Longer than a client's pool keeps a connection, so that none is closed under a request.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=3,
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, on loopback and nowhere else: the service has a door without a lock."""
    if host not in (LOOPBACK, "::1"):
        raise ValueError(f"the rehearsal service listens on 127.0.0.1 or ::1 only, not on {host}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol by name: asyncio sets TCP_NODELAY only where it stands, and without it each answer to a
    # kept connection waits 40 ms for an acknowledgement.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock
