"""A network backend whose every read and write is bounded by one deadline: a drip outlives httpx's own timeouts."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore


class Deadline(threading.local):
    """When the current thread's call must be over, by the monotonic clock in seconds."""

    at: float | None = None

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """The timeout, cut to what is left; raises `late` where nothing is."""
        if self.at is None:
            return timeout
        left = self.at - time.monotonic()
        if left <= 0:
            raise late
        return left if timeout is None else min(timeout, left)


class DeadlineBackend(httpcore.NetworkBackend):
    """Makes connections that keep the thread's deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            left = self._deadline.left(timeout, httpcore.ConnectTimeout)
            return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)
        except BaseException:
            self._stream.close()  # whoever asked for TLS forgets the plain stream
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
