"""One operation on the network: what sync and async share. Nothing here knows the service's meaning."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx

from sealpipe._version import __version__
from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.api.refusals import escape_text
from sealpipe.errors import UsageError
from sealpipe.http.tls import pool_proxy, proxy_for, tls_context
from sealpipe.secret_scan import CustodyGate, credential_leak_error

if TYPE_CHECKING:
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
    proxy = pool_proxy(proxy_for(session.base_url))
    return options if proxy is None else {**options, "proxy": proxy}


def request(session: Session, operation: Operation[Any], timeout: float, content: Any, trace: Any) -> httpx.Request:
    """The request of an operation. `content` makes chunks of the body; `trace` is told of every step."""
    try:
        made = _made(session, operation, timeout, content, trace)
    except (ValueError, TypeError, httpx.InvalidURL):
        made = None  # its text may hold anything, and must not become a context
    if made is None or not all(_HEADER.fullmatch(value) for _, value in made.headers.raw):
        raise UsageError(
            "the request holds what HTTP cannot carry (a line break, half a character, too much): nothing was sent",
            remedy="a header, such as an idempotency key, is visible ASCII; a short code is the code alone",
        )
    passed(session.gate, made, operation.body, b"authorization")
    return made


def _made(session: Session, operation: Operation[Any], timeout: float, content: Any, trace: Any) -> httpx.Request:
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


def passed(gate: CustodyGate, made: httpx.Request, body: bytes | bytearray | None, login: bytes = b"") -> None:
    """UsageError where a finished request holds a secret of our credential; `login` names the header that may.

    The one door of every request: what is written in pieces is `body` as a whole, so that nothing of it has left.
    """
    gate.check("the address", made.url.raw_host, made.url.raw_path)
    for name, value in made.headers.raw:
        if gate.holds(name) or gate.holds(value, login=name.lower() == login):
            raise credential_leak_error("a header")
    if body is not None:
        gate.check("the body", body)


def pieces(body: bytes | bytearray) -> Iterator[bytes]:
    """The body in pieces, each copied once."""
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE])


_HEADER = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
"""A header's value as RFC 9110 has it (5.5): anything else the other end, or h11 on the way, does not take."""
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
    return escape_text(str(error) or type(error).__name__, 200)


_SAID: tuple[tuple[tuple[type[Exception], ...], Callable[[Exception], str]], ...] = (
    ((httpx.ConnectTimeout, httpx.PoolTimeout), lambda _: "no connection came about in time"),
    ((httpx.TimeoutException, TimeoutError), lambda _: "the time ran out"),
    ((httpx.ConnectError,), lambda error: f"no connection: {_cause(error)}"),
    ((httpx.ProxyError,), lambda error: f"the proxy refused: {_cause(error)}"),
    ((httpx.TransportError, OSError), lambda error: f"the connection broke: {_cause(error)}"),
)
