"""One operation on the network: what sync and async share. Nothing here knows the service's meaning."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import httpx

from sealpipe._version import __version__
from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.api.refusals import printable
from sealpipe.client.trust import proxy_for, tls_context
from sealpipe.flows.session import Session

PIECE = 256 * 1024
"""Bytes of a body that are handed to the socket at a time: httpx copies a whole one again and again."""


def pool_options(session: Session) -> dict[str, Any]:
    """What the connection pools are made with. Certificates are read only where TLS is spoken."""
    tls = session.base_url.startswith("https://")
    options: dict[str, Any] = {
        "ssl_context": tls_context(os.environ, session.ca_file) if tls else None,
        "max_connections": 10,
        "http1": True,
        "http2": False,
    }
    proxy = proxy_for(session.base_url)
    if proxy is not None:
        url = httpx.URL(proxy)
        user = (url.username.encode(), url.password.encode()) if url.username else None
        options["proxy"] = httpcore.Proxy(str(url.copy_with(username=None, password=None)), auth=user)
    return options


def request(session: Session, operation: Operation[Any], timeout: float, content: Any, trace: Any) -> httpx.Request:
    """The request of an operation. `content` makes chunks of the body; `trace` is told of every step."""
    # httpx.Headers hides the credential in its repr, a dict would not.
    headers = httpx.Headers(dict(operation.headers))
    headers["authorization"] = session.credential.header().reveal()
    headers.setdefault("accept", "application/json")
    headers["accept-encoding"] = "identity"
    headers["user-agent"] = f"sealpipe/{__version__}"
    if operation.own_connection:
        headers["connection"] = "close"
    if operation.body is not None:
        headers["content-length"] = str(len(operation.body))
    return httpx.Request(
        operation.method,
        httpx.URL(session.base_url + operation.path, params=dict(operation.query) or None),
        headers=headers,
        content=content,
        extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout), "trace": trace},
    )


def pieces(body: bytes | bytearray) -> Iterator[bytes]:
    """The body in pieces, each copied once."""
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE])


_BLANK_LINE = rb"(?:\r\n|\n|\r(?!\n)){2}"


class Watch:
    """Notes whether any byte of our request may have left: before that, a failure is provably harmless."""

    def __init__(self) -> None:
        self.sent = False

    def note(self, event: str, info: dict[str, Any]) -> None:
        sending = event.endswith("send_request_headers.started")
        if sending and getattr(info.get("request"), "method", b"") != b"CONNECT":
            self.sent = True


class Gathering:
    """An answer as it comes in, up to the operation's limit, or until it is whole."""

    def __init__(self, response: httpx.Response, operation: Operation[Any]) -> None:
        self._response = response
        self._limit = operation.limit
        self._whole = operation.whole
        self._body = bytearray()
        self._looked_at = 0
        encoding = response.headers.get("content-encoding", "identity").lower()
        self._flaw = "" if encoding == "identity" else "is encoded, though that was not asked for"

    def full(self, piece: bytes) -> bool:
        """Add a piece; True where nothing more is wanted."""
        self._body += piece
        if len(self._body) > self._limit:
            self._flaw = f"has more than {self._limit} bytes"
        return bool(self._flaw) or (self._whole is not None and self._suffices(self._whole, len(piece)))

    def answer(self) -> Answer:
        """What came back, as a value."""
        return self._answer(b"" if self._flaw else bytes(self._body))

    def _suffices(self, whole: Callable[[Answer], bool], new: int) -> bool:
        """Whether an event that ended just now was the one. Each is looked at once, however small the pieces are."""
        begin = max(self._looked_at, len(self._body) - new - 3)
        ends = [blank.end() for blank in re.compile(_BLANK_LINE).finditer(self._body, begin)]
        if not ends:
            return False
        events = bytes(self._body[self._looked_at : ends[-1]])
        self._looked_at = ends[-1]
        return whole(self._answer(events))

    def _answer(self, body: bytes) -> Answer:
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Answer(self._response.status_code, headers, body, self._flaw)


def failure(error: Exception, watch: Watch) -> Failure | None:
    """What a transport's exception means; None for one that is no matter of the network."""
    for kinds, say in _SAID:
        if isinstance(error, kinds):
            return Failure(watch.sent, say(error))
    return None


def _cause(error: Exception) -> str:
    return printable(str(error) or type(error).__name__, 200)


_SAID: tuple[tuple[tuple[type[Exception], ...], Callable[[Exception], str]], ...] = (
    ((httpx.ConnectTimeout, httpx.PoolTimeout), lambda _: "no connection came about in time"),
    ((httpx.TimeoutException, TimeoutError), lambda _: "the time ran out"),
    ((httpx.ConnectError,), lambda error: f"no connection: {_cause(error)}"),
    ((httpx.ProxyError,), lambda error: f"the proxy refused: {_cause(error)}"),
    ((httpx.TransportError, OSError), lambda error: f"the connection broke: {_cause(error)}"),
)
