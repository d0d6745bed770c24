"""A pool of HTTP connections to one Vault, one for each calling thread.

They are the standard library's, over the sockets that the context opens. hvac's own connections (`requests`) used four
times the CPU, and ignored our certificates and proxies (docs/contributing/benchmarks.md, `vault-cpu`).
"""

from __future__ import annotations

import io
import re
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import Any, Final, NamedTuple

from sealpipe.plugin import NotConfiguredError, PluginError, UnavailableError
from sealpipe_plugins.http_errors import connect_error

BODY_LIMIT: Final = 32 * 1024 * 1024
"""Maximum bytes of a response's body."""

HEAD_LIMIT: Final = 1024 * 1024
"""Maximum bytes of a response's head, with informational responses."""

BUFFER_SIZE: Final = 8192
"""Bytes read at once; less than a TLS record. Python's own default depends on its version."""

_RETRY_DELAY: Final = 0.2
"""Seconds after a failed connection during which calls fail at once."""


_HEAD: Final = re.compile(
    rb"(?:HTTP/1\.[01] [1-9][0-9]{2}(?: [^\r\n\0]*)?\r?\n"  # the status line
    rb"(?:[^\r\n\0]+\r?\n)*\r?\n)+"  # headers; and again after a 100 Continue
)
"""A response head, as received. http.client would also accept HTTP/1.9, and a lone CR as a line break."""


class Response(NamedTuple):
    """A response. Header names are case-insensitive."""

    status: int
    headers: HTTPMessage
    body: bytes


class _Reader(io.BufferedReader):
    """A reader that records the lines of the head."""

    head: bytearray | None = None

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if self.head is not None:
            self.head += line
            if len(self.head) > HEAD_LIMIT:
                raise HTTPException("the response head is too long")
        return line


class _Response(HTTPResponse):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fp = _Reader(self.fp.detach(), BUFFER_SIZE)

    def begin(self) -> None:
        """Read the head. Raises HTTPException unless it is strictly valid."""
        reader = self.fp
        if isinstance(reader, _Reader):
            reader.head = bytearray()
            super().begin()
            head, reader.head = reader.head, None
            if not _HEAD.fullmatch(head):
                raise HTTPException("an invalid response head")


class Connection(HTTPConnection):
    """HTTP/1.1 over a socket from `open_socket`, for one thread at a time. `used`: it has carried a request."""

    response_class = _Response

    def __init__(self, host: str, open_socket: Callable[[], socket.socket]) -> None:
        super().__init__(host)
        self.used = False
        self._open_socket = open_socket
        self._unsent = bytearray()

    @property
    def is_open(self) -> bool:
        """Return whether it can carry another request."""
        return self.sock is not None

    def connect(self) -> None:
        """Open the socket; the base class calls it before the first request."""
        self.used = False
        self.sock = self._open_socket()

    def send(self, data: Any) -> None:
        """Buffer the request, because the base class sends the head before the body."""
        self._unsent += data

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Send a request and read the whole response. Raises OSError or HTTPException; then the connection is closed.

        Raises ValueError for a header value with a line break; then nothing is sent.
        """
        if any(not each.isascii() or not each.isprintable() for each in (target, *headers.values())):
            raise ValueError("a header cannot have these characters")
        try:
            if self.sock is not None and _is_readable(self.sock):
                self.close()  # Vault has closed the connection, or sent something that belongs to no request
            self._unsent.clear()
            self.request(method, target, body, headers)
            super().send(self._unsent)
            with self.getresponse() as response:
                _check_framing(response)
                result = Response(response.status, response.headers, _read_body(response))
                if response.chunked or response.version != 11:
                    self.close()  # http.client parses chunks leniently, so the end of the response is not certain
        except BaseException:
            self.close()
            raise
        self.used = True
        return result


class ConnectionPool:
    """Connections to `host`; `prefix` is the path of Vault's address. Thread-safe."""

    def __init__(self, open_socket: Callable[[], socket.socket], host: str, prefix: str = "") -> None:
        self._open_socket = open_socket
        self._host = host
        self._prefix = prefix
        self._free: deque[Connection] = deque()
        self._last_failure: tuple[float, PluginError] | None = None

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Make one request. Raises UnavailableError or NotConfiguredError if there is no response."""
        if self._last_failure is not None and time.monotonic() - self._last_failure[0] < _RETRY_DELAY:
            raise copy_error(self._last_failure[1])
        try:
            return self._exchange(method, self._prefix + target, {"Host": self._host, **headers}, body)
        except (OSError, HTTPException) as error:
            failure = self._connection_error(error)
        except ValueError:
            # raised before anything is sent: a namespace or token with a line break would inject headers
            raise NotConfiguredError(
                "a namespace or a token contains invalid characters", remedy="check both"
            ) from None
        self._last_failure = time.monotonic(), failure
        raise failure

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        while self._free:
            self._free.pop().close()

    __del__ = close  # for a run that ends without close()

    def retry_at_once(self) -> None:
        """Let the next call connect at once, even if the last attempt has just failed."""
        self._last_failure = None

    def set_timeout(self, seconds: float) -> None:
        """Set the timeout of each step on the open connections."""
        for connection in self._free:
            connection.sock.settimeout(seconds)

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        try:
            connection = self._free.pop()
        except IndexError:
            connection = Connection(self._host, self._open_socket)
        try:
            result = connection.exchange(method, target, headers, body)
        except (RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not connection.used or method != "GET":
                raise
            connection = Connection(self._host, self._open_socket)  # Vault has closed the idle connection
            result = connection.exchange(method, target, headers, body)
        if connection.is_open:
            self._free.append(connection)
        return result

    def _connection_error(self, error: Exception) -> PluginError:
        host_name = f"Vault at {self._host}"
        if isinstance(error, TimeoutError):
            return UnavailableError(
                f"{host_name} did not respond in time", remedy="check the address; the setting timeout"
            )
        if isinstance(error, HTTPException | ConnectionResetError | BrokenPipeError):
            return UnavailableError(
                f"{host_name} closed the connection", remedy="check the address, and a proxy in front of it"
            )
        failure = connect_error(error, "Vault", self._host)
        if "SEALPIPE_CA_FILE" in failure.remedy:
            failure.remedy = "name the CA's file in VAULT_CACERT (the setting ca_file), or in SEALPIPE_CA_FILE"
        return failure


def copy_error(error: PluginError) -> PluginError:
    """Copy an error for another call, because each call adds its own locator."""
    return type(error)(error.message, remedy=error.remedy)


def _is_readable(sock: socket.socket) -> bool:
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    poll = select.poll()  # one system call; a selector of the standard library would take four
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _check_framing(response: HTTPResponse) -> None:
    """Refuse an ambiguous length: the next response on the connection could be confused with this one."""
    lengths, codings = (response.headers.get_all(name, []) for name in ("content-length", "transfer-encoding"))
    if response.status < 200 or response.headers.defects or len(lengths) + len(codings) > 1:
        raise HTTPException("a response with invalid framing")
    if (codings and not response.chunked) or not all(each.isascii() and each.isdigit() for each in lengths):
        raise HTTPException("a response of unknown length")
    if response.length is not None and response.length > BODY_LIMIT:
        raise HTTPException("the response is too long")


def _read_body(response: HTTPResponse) -> bytes:
    body = bytearray()
    while chunk := response.read1(65536):
        body += chunk
        if len(body) > BODY_LIMIT:
            raise HTTPException("the response is too long")
    if response.length:
        raise IncompleteRead(b"")
    return bytes(body)
