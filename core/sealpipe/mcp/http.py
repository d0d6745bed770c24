"""Serves over HTTP on this machine: loopback only, with a bearer token that is kept in a file.

Other processes and web pages of this machine reach the port, too. So each request needs the token,
and the name of the host by which it was reached must be ours: a page in a browser that makes its
own name point here (DNS rebinding) sends another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, MutableMapping
from hmac import compare_digest
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from sse_starlette.sse import AppStatus
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sealpipe import signals
from sealpipe.async_client import GRACE
from sealpipe.errors import UsageError
from sealpipe.mcp.server import Setup, make_server, silence_loggers
from sealpipe.secret import Secret

PATH: Final = "/mcp"
"""Where the server is: `http://127.0.0.1:PORT/mcp`."""
MAX_BODY: Final = 1024 * 1024
"""Most bytes of one message."""
MAX_SESSIONS: Final = 64
"""Most clients of the older kind, which begin with a handshake, at once."""
MOST_STRANGERS: Final = 64
"""Connections that have not shown the token, at once. The oldest are closed for new ones."""
PATIENCE: Final = 10.0
"""Seconds for the first request with the token on a connection."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to this address of loopback.

    Raises UsageError if it cannot be.
    """
    # asyncio turns Nagle's algorithm off only with the protocol's number, and then no response
    # waits for 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise UsageError(
            f"port {port} of {host} cannot be used: {error.strerror}",
            remedy="choose another port for --http",
        ) from None
    return sock


async def serve_http(
    setup: Setup, address: tuple[str, int], token: Secret, announce: Callable[[str], None]
) -> None:
    """Serve clients until SIGINT or SIGTERM.

    Calls `announce` with the URL as soon as connections are accepted.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    sock = listen(*address)
    host, port = sock.getsockname()
    signals.call_on_signal(lambda: loop.call_soon_threadsafe(stop.set))
    await serve(
        make_server(setup), sock, token, stop, lambda: announce(f"http://{host}:{port}{PATH}")
    )


async def serve(
    server: Server[Any],
    sock: socket.socket,
    token: Secret,
    stop: asyncio.Event,
    announce: Callable[[], None],
) -> None:
    """Serve clients with the token until `stop` is set.

    Calls `announce` as soon as connections are accepted.

    Then open calls are cancelled, and have some seconds to finish what they are changing.
    """
    silence_loggers("uvicorn", "sse_starlette", "asyncio")
    manager = StreamableHTTPSessionManager(
        server,
        security_settings=_make_security_settings(sock),
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
    )
    strangers = _Strangers()
    gate = _Gate(manager, token, strangers)
    config = uvicorn.Config(
        gate,
        http=_make_protocol(strangers),
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        backlog=MOST_STRANGERS,  # as many are accepted at once, before any is counted
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        # longer than clients keep a connection, so that none is closed during a request
        timeout_keep_alive=75,
        timeout_graceful_shutdown=0,  # what is open then was cancelled, and has had its time
    )
    async with manager.run():
        # Made again where every secret is seen that must not go out.
        gate.token = Secret(token.reveal())
        await _HttpServer(config, stop, announce).serve([sock])


def _make_security_settings(sock: socket.socket) -> TransportSecuritySettings:
    host, port = sock.getsockname()
    names = [f"{host}:{port}", f"localhost:{port}"]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )


class _Strangers:
    """The connections that have not shown the token: few, and each for a short time only.

    Every user of this machine can connect; otherwise one of them would take all descriptors of the
    process.
    """

    def __init__(self) -> None:
        self._waiting: dict[object, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def add(self, peer: object, transport: asyncio.Transport) -> None:
        """Add a new connection. Closes the oldest if there are too many."""
        while len(self._waiting) >= MOST_STRANGERS:
            self._close(next(iter(self._waiting)))
        self._waiting[peer] = (
            transport,
            asyncio.get_running_loop().call_later(PATIENCE, self._close, peer),
        )

    def remove(self, peer: object) -> asyncio.Transport | None:
        """Remove a connection that has shown the token, or has ended."""
        transport, timer = self._waiting.pop(peer, (None, None))
        if timer is not None:
            timer.cancel()
        return transport

    def _close(self, peer: object) -> None:
        transport = self.remove(peer)
        if transport is not None:
            transport.abort()


def _make_protocol(strangers: _Strangers) -> type[asyncio.Protocol]:
    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            strangers.add(self.client, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            strangers.remove(self.client)
            super().connection_lost(exc)

    return Protocol


class _Gate:
    """Lets through what has the token; says nothing else to anyone."""

    def __init__(
        self, manager: StreamableHTTPSessionManager, token: Secret, strangers: _Strangers
    ) -> None:
        self._manager = manager
        self.token = token
        self._strangers = strangers
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            response = PlainTextResponse("Not found", 404)
        elif not self._is_authorized(scope):
            response = PlainTextResponse(
                "The token is missing or wrong", 401, {"WWW-Authenticate": "Bearer"}
            )
        elif scope["method"] not in ("POST", "DELETE"):
            # A stream for what the server says unasked: it says nothing unasked, and clients go on
            # without.
            response = PlainTextResponse("Method not allowed", 405, {"Allow": "POST, DELETE"})
        else:
            self._strangers.remove(scope["client"])
            await self._pass_on(scope, receive, send)
            return
        await response(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Without an open one, nothing looks twice a second whether the server ends.
        """
        self._open += 1
        AppStatus.should_exit = False
        try:
            await self._manager.handle_request(scope, receive, send)
        finally:
            self._open -= 1
            AppStatus.should_exit = not self._open

    def _is_authorized(self, scope: MutableMapping[str, Any]) -> bool:
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(values) != 1:
            return False
        scheme, _, token = values[0].partition(b" ")
        return scheme.lower() == b"bearer" and compare_digest(
            token.strip(), self.token.reveal_bytes()
        )


class _HttpServer(uvicorn.Server):
    """uvicorn without its signals, and without its loop that looks ten times a second."""

    def __init__(
        self, config: uvicorn.Config, stop: asyncio.Event, announce: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._stop = stop
        self._announce = announce

    async def main_loop(self) -> None:
        """Serve until `stop` is set."""
        self._announce()
        await self._stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cancel open calls, let them finish what they change, and close all connections."""
        for server in self.servers:
            server.close()
        calls = list(self.server_state.tasks)
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=GRACE + 1)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals: they are the command's."""
        yield
