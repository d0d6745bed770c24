"""The httpx client that plugins share.

Our certificates, the environment's proxies, no redirects, one deadline.
"""

from __future__ import annotations

import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

import httpcore
import httpx

from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import UsageError
from sealpipe.network import service_network
from sealpipe.network.connections import EXCHANGE_DEADLINE, DeadlineBackend, refuse_cleartext
from sealpipe.network.exchange import check_request
from sealpipe.network.service_network import make_pool_proxy, silence_httpcore
from sealpipe.network.sockets import make_access_denied_error
from sealpipe.version import __version__


def make_plugin_client(
    context: Callable[[], ssl.SSLContext],
    proxy_context: Callable[[], ssl.SSLContext],
    proxy: Callable[[str], str | None],
    timeout: float,
    deadline: float,
    gate: CustodyGate,
) -> httpx.Client:
    """Make a client. `context` is called for the first connection, `proxy` for every URL.

    `proxy_context` is for TLS to an https:// proxy: that gets no backend's client certificate, and
    no backend's CA is trusted for it. `timeout` is in seconds for each step of a call, `deadline`
    in seconds for a request with its whole response. A request that `gate` stops raises
    AccessDeniedError and is not sent.
    """
    transport = _Transport(context, proxy_context, proxy, deadline, gate)
    client = _Client(
        transport=transport,
        trust_env=False,  # it would send loopback through a proxy
        follow_redirects=False,
        timeout=timeout,
        headers={"user-agent": f"sealpipe/{__version__}"},
    )
    weakref.finalize(client, transport.close)  # plugins need not close it
    return client


class _NoCookies(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep none."""


class _Client(httpx.Client):
    """A client without cookies.

    One plugin's would go with the requests of another, and looking for them costs time.
    """

    @property
    def cookies(self) -> httpx.Cookies:
        return _NoCookies()

    @cookies.setter
    def cookies(self, _: object) -> None:
        raise NotImplementedError("the client that plugins share keeps no cookies")


class _Transport(httpx.BaseTransport):
    """httpx's requests over httpcore's pools, one for each proxy and one without.

    Only for https:// with certificates.

    httpx's own transport accepts no network backend, so it cannot obey a wall-clock deadline.
    """

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        proxy_context: Callable[[], ssl.SSLContext],
        proxy: Callable[[str], str | None],
        deadline: float,
        gate: CustodyGate,
    ) -> None:
        self._context = context
        self._proxy_context = proxy_context
        self._proxy = proxy
        self._deadline = deadline
        self._gate = gate
        self._lock = threading.Lock()  # plugins call from several threads
        self._pools: dict[tuple[str, str | None], httpcore.ConnectionPool] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        refuse_cleartext(request.url.scheme, request.url.host)
        self._check(request)
        pool = self._get_pool(request.url.scheme, self._proxy(str(request.url)))
        end = EXCHANGE_DEADLINE.compute_end(self._deadline)
        began = time.monotonic()
        with silence_httpcore(), EXCHANGE_DEADLINE.hold_until(end), _translate_errors(request):
            response = pool.handle_request(self._convert(request))
        if service_network.watch is not None:
            length = len(request.content)
            service_network.watch(
                request.method, request.url.host, response.status, time.monotonic() - began, length
            )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_ResponseBody(response, request, end),
            # httpx logs the reason phrase, which may be anything; without it, it uses the status's
            # standard one.
            extensions={
                name: value
                for name, value in response.extensions.items()
                if name != "reason_phrase"
            },
        )

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _check(self, request: httpx.Request) -> None:
        try:
            check_request(
                self._gate,
                request.url.raw_host,
                request.url.raw_path,
                request.headers.raw,
                request.read(),
            )
            return
        except UsageError as error:
            refusal = make_access_denied_error(self._gate, request.url.host, error)
        raise refusal

    def _convert(self, request: httpx.Request) -> httpcore.Request:
        max_timeout = self._deadline
        timeouts = request.extensions.get("timeout", {}).items()
        url = request.url
        return httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.content,
            extensions={
                **request.extensions,
                "timeout": {
                    name: max_timeout if each is None else min(each, max_timeout)
                    for name, each in timeouts
                },
            },
        )

    def _get_pool(self, scheme: str, proxy: str | None) -> httpcore.ConnectionPool:
        with self._lock:
            if (scheme, proxy) not in self._pools:
                self._pools[scheme, proxy] = httpcore.ConnectionPool(
                    # A connection to a proxy begins without TLS; any other connection without TLS
                    # must be to this machine.
                    network_backend=DeadlineBackend(
                        EXCHANGE_DEADLINE, None if proxy else _check_plain
                    ),
                    ssl_context=self._context() if scheme == "https" else None,
                    proxy=make_pool_proxy(
                        proxy, self._proxy_context() if _is_tls_proxy(proxy) else None
                    ),
                    max_connections=32,
                    max_keepalive_connections=32,
                    keepalive_expiry=5.0,
                )
            return self._pools[scheme, proxy]


def _is_tls_proxy(proxy: str | None) -> bool:
    return proxy is not None and urlsplit(proxy).scheme == "https"


def _check_plain(address: str) -> None:
    refuse_cleartext("http", address)


class _ResponseBody(httpx.SyncByteStream):
    """The body of a response, under the same deadline as its headers."""

    def __init__(self, response: httpcore.Response, request: httpx.Request, end: float) -> None:
        self._response = response
        self._request = request
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._response.iter_stream()
        while True:
            with (
                silence_httpcore(),
                EXCHANGE_DEADLINE.hold_until(self._end),
                _translate_errors(self._request),
            ):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def close(self) -> None:
        self._response.close()


_ERRORS: Final = {
    getattr(httpcore, name): getattr(httpx, name)
    for name in (
        *("ConnectTimeout", "PoolTimeout", "ReadTimeout", "WriteTimeout", "TimeoutException"),
        *("ConnectError", "ReadError", "WriteError", "NetworkError"),
        *(
            "LocalProtocolError",
            "RemoteProtocolError",
            "ProtocolError",
            "ProxyError",
            "UnsupportedProtocol",
        ),
    )
}


@contextmanager
def _translate_errors(request: httpx.Request) -> Iterator[None]:
    """Raise httpcore's exceptions as httpx's of the same name, which plugins know."""
    try:
        yield
    except tuple(_ERRORS) as error:
        raise _ERRORS[type(error)](str(error), request=request) from error
