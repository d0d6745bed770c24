"""The HTTP client that plugins share: our certificates, the environment's proxies, no redirects, no surprises."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from sealpipe._version import __version__
from sealpipe.client.trust import proxy_for, tls_context


def plugin_client(ca_file: Path | None, timeout: float) -> httpx.Client:
    """A client. `timeout` is in seconds, for each step of a call."""
    return httpx.Client(
        transport=_ByProxy(ca_file),
        trust_env=False,  # it would send loopback through a proxy
        follow_redirects=False,
        timeout=timeout,
        headers={"user-agent": f"sealpipe/{__version__}"},
    )


class _ByProxy(httpx.BaseTransport):
    """A connection pool for each way out: direct, or through a proxy."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._pools: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = proxy_for(str(request.url))
        if proxy not in self._pools:
            context = tls_context(os.environ, self._ca_file)
            limits = httpx.Limits(max_connections=32, max_keepalive_connections=32)
            self._pools[proxy] = httpx.HTTPTransport(verify=context, proxy=proxy, trust_env=False, limits=limits)
        return self._pools[proxy].handle_request(request)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
