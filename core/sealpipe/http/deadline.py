"""One wall-clock deadline for an exchange, whatever it is made of: a drip outlives the timeouts of single reads.

The service's client and the client that plugins share set it for the thread that makes a call; every step on the
network (the name, each address, TLS, a proxy's answer, each read and write) gets what is left of it.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpcore

from sealpipe.http.addresses import describe_not_loopback, resolve_host
from sealpipe.loopback import is_loopback


class Deadline(threading.local):
    """When the current thread's exchange must be over, by the monotonic clock in seconds; None: there is none."""

    at: float | None = None

    def compute_end(self, seconds: float) -> float:
        """When an exchange is over that begins now and may take so long, inside of one that is under way."""
        own_end = time.monotonic() + seconds
        return own_end if self.at is None else min(own_end, self.at)

    @contextmanager
    def hold_until(self, end: float) -> Iterator[None]:
        """Hold whatever this thread does on the network meanwhile to that end."""
        previous, self.at = self.at, end
        try:
            yield
        finally:
            self.at = previous

    def cut_timeout(self, timeout: float | None, error: type[Exception]) -> float | None:
        """The timeout, cut to what is left; raises `error` where nothing is."""
        if self.at is None:
            return timeout
        remaining = self.at - time.monotonic()
        if remaining <= 0:
            raise error
        return remaining if timeout is None else min(timeout, remaining)


EXCHANGE_DEADLINE = Deadline()
"""The exchange of a plugin that is under way in this thread."""


class DeadlineBackend(httpcore.NetworkBackend):
    """Makes connections that keep the thread's deadline.

    `check_plain` is called with the address of a connection without TLS, before its first byte, and may refuse.
    `loopback_only`: no connection at all to another machine.
    """

    def __init__(
        self, deadline: Deadline, check_plain: Callable[[str], object] | None = None, *, loopback_only: bool = False
    ) -> None:
        self._deadline = deadline
        self._loopback_only = loopback_only
        self._check_plain = check_plain
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        timeout_error = httpcore.ConnectTimeout
        failure: Exception = httpcore.ConnectError("the name has no address")
        for address in _resolve_addresses(host, port, self._deadline.cut_timeout(timeout, timeout_error)):
            try:
                left = self._deadline.cut_timeout(timeout, timeout_error)
                if self._loopback_only and not is_loopback(address):
                    raise httpcore.ConnectError(describe_not_loopback(host, address))
                stream = self._backend.connect_tcp(address, port, left, local_address, socket_options)
                return _DeadlineStream(stream, self._deadline, self._bind_check(stream))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _bind_check(self, stream: httpcore.NetworkStream) -> Callable[[], object] | None:
        """What has to be called before anything is written without TLS."""
        if self._check_plain is None:
            return None
        try:
            peer = stream.get_extra_info("server_addr")
        except OSError as error:  # it was reset at once
            stream.close()
            raise httpcore.ConnectError(str(error)) from error
        return partial(self._check_plain, str(peer[0]))


def _resolve_addresses(host: str, port: int, timeout: float | None) -> list[str]:
    try:
        return list(dict.fromkeys(str(addresses[4][0]) for addresses in resolve_host(host, port, timeout)))
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(
        self, stream: httpcore.NetworkStream, deadline: Deadline, check_plain: Callable[[], object] | None = None
    ) -> None:
        self._stream = stream
        self._deadline = deadline
        self._check_plain = check_plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.cut_timeout(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._check_plain is not None:
            self._check_plain()
            self._check_plain = None
        if self._stream.get_extra_info("ssl_object") is not None:
            self._stream.write(buffer, self._deadline.cut_timeout(timeout, httpcore.WriteTimeout))
            return
        # Without TLS each send is a step of its own, and who reads slowly makes it many: the deadline is for them all.
        view = memoryview(buffer)
        while view:
            self._stream.write(bytes(view[:_WRITE_SIZE]), self._deadline.cut_timeout(timeout, httpcore.WriteTimeout))
            view = view[_WRITE_SIZE:]

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            left = self._deadline.cut_timeout(timeout, httpcore.ConnectTimeout)
            ssl_context.sslsocket_class = _DeadlineTlsSocket
            secure = self._stream.start_tls(ssl_context, server_hostname, left)
            made = secure.get_extra_info("socket")
            if isinstance(made, _DeadlineTlsSocket):
                made.deadline = self._deadline
            return _DeadlineStream(secure, self._deadline)
        except BaseException:
            self._stream.close()  # whoever asked for TLS forgets the plain stream
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


_WRITE_SIZE = 64 * 1024


class _DeadlineTlsSocket(ssl.SSLSocket):
    """TLS inside of it, behind a proxy, is many reads and writes: each gets what is left."""

    deadline: Deadline | None = None

    def recv(self, *given: Any) -> bytes:
        self._apply_deadline()
        return super().recv(*given)

    def send(self, *given: Any) -> int:
        self._apply_deadline()
        return super().send(*given)

    def _apply_deadline(self) -> None:
        if self.deadline is not None:
            self.settimeout(self.deadline.cut_timeout(self.gettimeout(), TimeoutError))
