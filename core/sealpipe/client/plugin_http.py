"""The HTTP client that plugins share: our certificates, the environment's proxies, no redirects, no surprises."""

from __future__ import annotations

import ssl
import threading
import weakref
from collections.abc import Callable

import httpx

from sealpipe._version import __version__


def plugin_client(
    context: Callable[[], ssl.SSLContext], proxy: Callable[[str], str | None], timeout: float
) -> httpx.Client:
    """A client; `context` is asked for when a connection is first made, `proxy` for every address.

    `timeout` is in seconds, for each step of a call.
    """
    transport = _ByProxy(context, proxy)
    client = httpx.Client(
        transport=transport,
        trust_env=False,  # it would send loopback through a proxy
        follow_redirects=False,
        timeout=timeout,
        headers={"user-agent": f"sealpipe/{__version__}"},
    )
    weakref.finalize(client, transport.close)  # plugins have no end of their own
    return client


class _ByProxy(httpx.BaseTransport):
    """A connection pool for each way out: direct, or through a proxy."""

    def __init__(self, context: Callable[[], ssl.SSLContext], proxy: Callable[[str], str | None]) -> None:
        self._context = context
        self._proxy = proxy
        self._lock = threading.Lock()  # plugins call from several threads
        self._pools: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._proxy(str(request.url))
        with self._lock:
            if proxy not in self._pools:
                limits = httpx.Limits(max_connections=32, max_keepalive_connections=32)
                self._pools[proxy] = httpx.HTTPTransport(
                    verify=self._context(), proxy=proxy, trust_env=False, limits=limits
                )
            pool = self._pools[proxy]
        return pool.handle_request(request)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
