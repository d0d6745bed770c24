"""The HTTP client that plugins share: our certificates, the environment's proxies, no redirects, one deadline."""

from __future__ import annotations

import ssl
import threading
import weakref
from collections.abc import Callable, Iterator

import httpx

from sealpipe._version import __version__
from sealpipe.errors import UsageError
from sealpipe.http.deadline import EXCHANGE, DeadlineBackend, PooledTransport
from sealpipe.http.exchange import passed
from sealpipe.http.sockets import denied
from sealpipe.http.tls import pool_proxy, refuse_clear
from sealpipe.secret_scan import CustodyGate


def plugin_client(
    context: Callable[[], ssl.SSLContext],
    proxy: Callable[[str], str | None],
    timeout: float,
    deadline: float,
    gate: CustodyGate,
) -> httpx.Client:
    """A client; `context` is asked for when a connection is first made, `proxy` for every address.

    `timeout` is in seconds, for each step of a call; `deadline` for a request and all of its answer. A request that
    `gate` stops ends with AccessDeniedError, and is not sent.
    """
    transport = _ByProxy(context, proxy, deadline, gate)
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

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        proxy: Callable[[str], str | None],
        deadline: float,
        gate: CustodyGate,
    ) -> None:
        self._context = context
        self._proxy = proxy
        self._deadline = deadline
        self._gate = gate
        self._lock = threading.Lock()  # plugins call from several threads
        self._pools: dict[str | None, PooledTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        refuse_clear(request.url.scheme, request.url.host)
        self._check(request)
        pool = self._pool(self._proxy(str(request.url)))
        end = EXCHANGE.end(self._deadline)
        steps = request.extensions.get("timeout", {})
        cut = {name: self._deadline if given is None else min(given, self._deadline) for name, given in steps.items()}
        request.extensions = {**request.extensions, "timeout": cut}
        with EXCHANGE.until(end):
            response = pool.handle_request(request)
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _Bounded(response.stream, end)
        return response

    def _check(self, request: httpx.Request) -> None:
        try:
            passed(self._gate, request, request.read())
            return
        except UsageError as error:
            refusal = denied(request.url.host, error)
        raise refusal

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _pool(self, proxy: str | None) -> PooledTransport:
        with self._lock:
            if proxy not in self._pools:
                self._pools[proxy] = PooledTransport(
                    # On the way to a proxy there is no TLS yet; all else without it has to be this machine.
                    DeadlineBackend(EXCHANGE, None if proxy else _only_here),
                    ssl_context=self._context(),
                    proxy=pool_proxy(proxy),
                    max_connections=32,
                    max_keepalive_connections=32,
                    keepalive_expiry=5.0,
                )
            return self._pools[proxy]


def _only_here(address: str) -> None:
    refuse_clear("http", address)


class _Bounded(httpx.SyncByteStream):
    """The body of an answer: it has until the same end as its head, whoever reads it."""

    def __init__(self, stream: httpx.SyncByteStream, end: float) -> None:
        self._stream = stream
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        pieces = iter(self._stream)
        while True:
            with EXCHANGE.until(self._end):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def close(self) -> None:
        self._stream.close()
