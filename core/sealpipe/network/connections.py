"""Connections that obey one wall-clock deadline.

A peer that sends slowly can outlive the timeouts of single reads.

The service's client and the client that plugins share set the deadline for the thread that makes a
call. Every network step (the name lookup, each address, TLS, a proxy's response, each read and
write) gets the time that is left.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import httpcore

from sealpipe.cancellation import Cancellation
from sealpipe.errors import NotConfiguredError
from sealpipe.parsing import is_cleartext, is_loopback

T = TypeVar("T")
Addresses = list[tuple[Any, ...]]


class Deadline(threading.local):
    """The end of the current thread's exchange, in seconds of the monotonic clock.

    None if there is no deadline.
    """

    at: float | None = None
    cancellation: Cancellation | None = None
    """By which the caller can end each read and write of the exchange."""

    def compute_end(self, seconds: float) -> float:
        """Return the end of an exchange of at most `seconds` that begins now."""
        own_end = time.monotonic() + seconds
        return own_end if self.at is None else min(own_end, self.at)

    @contextmanager
    def hold_until(self, end: float, cancellation: Cancellation | None = None) -> Iterator[None]:
        """Apply this deadline, and this way to cancel, to the thread's network use in the block."""
        previous = self.at, self.cancellation
        self.at, self.cancellation = end, cancellation
        try:
            yield
        finally:
            self.at, self.cancellation = previous

    def cut_timeout(self, timeout: float | None, error: type[Exception]) -> float | None:
        """Return the timeout in seconds, limited to the remaining time.

        Raises `error` if none remains.
        """
        if self.at is None:
            return timeout
        remaining = self.at - time.monotonic()
        if remaining <= 0:
            raise error
        return remaining if timeout is None else min(timeout, remaining)


EXCHANGE_DEADLINE = Deadline()
"""The deadline of the plugin's current exchange in this thread."""


def resolve_host(host: str, port: int, timeout: float | None) -> Addresses:
    """Look up a name, as `socket.getaddrinfo` does.

    Raises OSError, and TimeoutError after `timeout` seconds.
    """
    if timeout is None or host == "localhost" or ":" in host or host.replace(".", "").isdigit():
        return _look_up(host, port)  # an address needs no lookup
    results: list[Addresses | BaseException] = []

    def resolve() -> None:
        try:
            results.append(_look_up(host, port))
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the caller's thread
            results.append(error)

    # A separate thread, abandoned on timeout: the system's lookup takes no timeout and cannot be
    # interrupted.
    thread = threading.Thread(target=resolve, name="sealpipe-name", daemon=True)
    thread.start()
    thread.join(timeout)
    if not results:
        raise TimeoutError("the name could not be looked up in time")
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def _look_up(host: str, port: int) -> Addresses:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def refuse_cleartext(scheme: str, host: str) -> None:
    """Refuse an unencrypted connection of a plugin to another machine. Raises NotConfiguredError.

    This is the last check before the first byte. Backends check earlier, and name the setting.
    """
    if is_cleartext(scheme, host):
        raise NotConfiguredError(
            (
                f"the address {scheme}://{host} would send secrets to another machine "
                "unencrypted: nothing was sent"
            ),
            remedy="use https://; http:// is only for loopback",
        )


def describe_not_loopback(host: str, address: str) -> str:
    """Return the reason why a host name that was allowed for http:// gets no connection."""
    return (
        f"the name {host} resolves to another machine ({address}), and http:// is for this "
        "machine only"
    )


class DeadlineBackend(httpcore.NetworkBackend):
    """Makes connections that obey the thread's deadline.

    `check_plain` is called with the peer's address before the first byte without TLS, and may
    raise. With `loopback_only`, connections to other machines are refused.
    """

    def __init__(
        self,
        deadline: Deadline,
        check_plain: Callable[[str], object] | None = None,
        *,
        loopback_only: bool = False,
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
        for address in _resolve_addresses(
            host, port, self._deadline.cut_timeout(timeout, timeout_error)
        ):
            try:
                left = self._deadline.cut_timeout(timeout, timeout_error)
                if self._loopback_only and not is_loopback(address):
                    raise httpcore.ConnectError(describe_not_loopback(host, address))
                stream = self._backend.connect_tcp(
                    address, port, left, local_address, socket_options
                )
                return _DeadlineStream(stream, self._deadline, self._bind_check(stream))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _bind_check(self, stream: httpcore.NetworkStream) -> Callable[[], object] | None:
        """Return the check to call before anything is written without TLS."""
        if self._check_plain is None:
            return None
        try:
            peer = stream.get_extra_info("server_addr")
        except OSError as error:  # the peer reset the connection at once
            stream.close()
            raise httpcore.ConnectError(str(error)) from error
        return partial(self._check_plain, str(peer[0]))


def _resolve_addresses(host: str, port: int, timeout: float | None) -> list[str]:
    try:
        return list(
            dict.fromkeys(str(addresses[4][0]) for addresses in resolve_host(host, port, timeout))
        )
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error


class _DeadlineStream(httpcore.NetworkStream):
    """A connection that obeys the thread's deadline.

    httpcore writes a request in parts: its head, pieces of its body, an empty end. Each part is
    held until the next, so that most requests cost the system one call.
    """

    def __init__(
        self,
        stream: httpcore.NetworkStream,
        deadline: Deadline,
        check_plain: Callable[[], object] | None = None,
    ) -> None:
        self._stream = stream
        self._deadline = deadline
        self._check_plain = check_plain
        self._held = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            self.write(b"", timeout)
        return self._block(
            self._stream.read, max_bytes, self._deadline.cut_timeout(timeout, httpcore.ReadTimeout)
        )

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._check_plain is not None:
            self._check_plain()
            self._check_plain = None
        if buffer and not self._held:
            self._held = buffer
            return
        buffer, self._held = self._held + buffer, b""
        if self._stream.get_extra_info("ssl_object") is not None:
            self._block(
                self._stream.write,
                buffer,
                self._deadline.cut_timeout(timeout, httpcore.WriteTimeout),
            )
            return
        # Without TLS a peer that reads slowly makes many sends of one: the deadline applies to all
        # of them.
        view = memoryview(buffer)
        while view:
            left = self._deadline.cut_timeout(timeout, httpcore.WriteTimeout)
            self._block(self._stream.write, bytes(view[:_WRITE_SIZE]), left)
            view = view[_WRITE_SIZE:]

    def _block(
        self, operate: Callable[[Any, float | None], T], argument: object, timeout: float | None
    ) -> T:
        """Read or write, and let the caller end it."""
        cancellation = self._deadline.cancellation
        if cancellation is None:
            return operate(argument, timeout)
        try:
            if not cancellation.start_blocking(self._shut_down):
                raise httpcore.NetworkError("the caller cancelled")
            return operate(argument, timeout)
        finally:
            cancellation.stop_blocking()

    def _shut_down(self) -> None:
        """Make what another thread reads or writes here fail at once. Closing would not do that."""
        with suppress(OSError):  # the peer was faster
            socket.socket.shutdown(self._stream.get_extra_info("socket"), socket.SHUT_RDWR)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        try:
            left = self._deadline.cut_timeout(timeout, httpcore.ConnectTimeout)
            ssl_context.sslsocket_class = _DeadlineTlsSocket
            secure = self._stream.start_tls(ssl_context, server_hostname, left)
            tls_socket = secure.get_extra_info("socket")
            if isinstance(tls_socket, _DeadlineTlsSocket):
                tls_socket.deadline = self._deadline
            return _DeadlineStream(secure, self._deadline)
        except BaseException:
            self._stream.close()  # the caller keeps no reference to the plain stream
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


_WRITE_SIZE = 64 * 1024


class _DeadlineTlsSocket(ssl.SSLSocket):
    """TLS to a proxy.

    A second TLS inside it causes many reads and writes: each gets the remaining time.
    """

    deadline: Deadline | None = None

    def recv(self, *args: Any) -> bytes:
        self._apply_deadline()
        return super().recv(*args)

    def send(self, *args: Any) -> int:
        self._apply_deadline()
        return super().send(*args)

    def _apply_deadline(self) -> None:
        if self.deadline is not None:
            self.settimeout(self.deadline.cut_timeout(self.gettimeout(), TimeoutError))
