"""How uvicorn serves the application, and the socket of TCP that it accepts from: the same for a
server and for a rehearsal.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Literal

import uvicorn
from starlette.types import ASGIApp


def make_config(
    application: ASGIApp,
    *,
    http: type[asyncio.Protocol] | Literal["h11"],
    lifespan: Literal["on", "off"],
    grace_seconds: int,
    tls: ssl.SSLContext | None = None,
) -> uvicorn.Config:
    """Return uvicorn's configuration: HTTP/1.1 only, no server header, no log of its own.

    Open calls have `grace_seconds` at the end.
    """
    config = uvicorn.Config(
        application,
        http=http,
        loop="asyncio",
        ws="none",
        lifespan=lifespan,
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,  # the service sets Date itself, from its own clock
        # Longer than a client's pool keeps a connection, so that none is closed during a request.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=grace_seconds,
    )
    config.load()
    config.ssl = tls  # uvicorn's own would choose ciphers of TLS 1.0
    return config


def bind(host: str, port: int, *, share_port: bool = False) -> socket.socket:
    """Return a bound socket. Raises OSError.

    With `share_port`, it can be bound while another socket of ours has the port (SO_REUSEPORT).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol number is required: only then does asyncio set TCP_NODELAY, without which each
    # response on a reused connection waits 40 ms for an acknowledgement.
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
