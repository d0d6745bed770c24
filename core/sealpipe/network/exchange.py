"""One HTTP exchange: its request, its response and its failures.

A service, or a proxy in between, may repeat our request in a message, a header or a page of its
own. None of it is shown or passed on before our credentials are redacted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import httpcore

from sealpipe.api.operation import Credential, Failure, Operation, Response
from sealpipe.api.responses import escape_text
from sealpipe.custody_gate import FOLDABLE, REDACTED, CustodyGate, credential_leak_error
from sealpipe.errors import UsageError
from sealpipe.spellings import Finder, replace_spans
from sealpipe.version import __version__

CHUNK_SIZE = 256 * 1024
"""Bytes of a body per call of the socket: each send copies the rest of its piece."""
MAX_TARGET_LENGTH = 64 * 1024
"""Maximum bytes of a request's path and query."""

_HEADER = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
"""A valid header value (RFC 9110, 5.5): h11 and servers refuse anything else."""
_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


class Service(NamedTuple):
    """What the network knows of the service: its API's address, and our credential for it.

    `gate` checks every request; the certificates in `ca_file` (PEM) are trusted in addition to the
    system's.
    """

    base_url: str
    credential: Credential
    gate: CustodyGate
    ca_file: Path | None = None


def build_request(
    service: Service, operation: Operation[Any], timeout: float, trace: Any
) -> httpcore.Request:
    """Build the request of an operation. httpcore calls `trace` at every step.

    Raises UsageError if HTTP cannot carry the request, or if it contains the custody secret.
    """
    try:
        request = _make_request(service, operation, timeout, trace)
    except (ValueError, TypeError):
        request = (
            None  # the error's text may contain a secret, and must not become our error's context
        )
    if (
        request is None
        or len(request.url.target) > MAX_TARGET_LENGTH
        or not all(_HEADER.fullmatch(value) for _, value in request.headers)
    ):
        raise UsageError(
            (
                "the request contains characters that HTTP does not allow, or is too large: "
                "nothing was sent"
            ),
            remedy=(
                "a header, such as an idempotency key, is visible ASCII; a short code is the "
                "code alone"
            ),
        )
    # All other headers are ours and the same in each request, and only `authorization` has a part
    # of the credential.
    given = [(b"", value.encode()) for value in operation.headers.values()]
    check_request(
        service.gate, request.url.host, request.url.target, given, operation.body_in_clear
    )
    return request


def _make_request(
    service: Service, operation: Operation[Any], timeout: float, trace: Any
) -> httpcore.Request:
    url = _make_url(service.base_url + operation.path, operation)
    headers = {"host": _make_host_header(url), "accept": "application/json"}
    headers.update((name.lower(), value) for name, value in operation.headers.items())
    headers["accept-encoding"] = "identity"
    headers["user-agent"] = f"sealpipe/{__version__}"
    if operation.own_connection:
        headers["connection"] = "close"
    if operation.body is not None or operation.method == "POST":
        headers["content-length"] = str(len(operation.body or b""))
    raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
    raw.append(
        (b"authorization", _HiddenBytes(service.credential.header().reveal().encode("ascii")))
    )
    return httpcore.Request(
        operation.method,
        url,
        headers=raw,
        content=None if operation.body is None else Body(operation.body),
        extensions={
            "timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout),
            "trace": trace,
        },
    )


def _make_url(address: str, operation: Operation[Any]) -> httpcore.URL:
    parts = urlsplit(address)
    host = parts.hostname or ""
    if not host.isascii():
        import idna

        host = idna.encode(host).decode("ascii")
    target = quote(parts.path, safe="%/:@!$&'()*+,;=~")
    if operation.query:
        target += "?" + urlencode(operation.query)
    return httpcore.URL(scheme=parts.scheme, host=host, port=parts.port, target=target)


def _make_host_header(url: httpcore.URL) -> str:
    host = url.host.decode()
    host = f"[{host}]" if ":" in host else host
    return host if url.port is None else f"{host}:{url.port}"


class _HiddenBytes(bytes):
    """A header's value that no repr shows: httpcore stores headers in a plain list."""

    def __repr__(self) -> str:
        return "b'[hidden]'"

    __str__ = __repr__


class Body:
    """A request's body in pieces, each copied once.

    httpx and httpcore would copy it whole at every send.
    """

    def __init__(self, content: bytes | bytearray) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        view = memoryview(self._content)
        for start in range(0, len(view), CHUNK_SIZE):
            yield bytes(view[start : start + CHUNK_SIZE])


def check_request(
    gate: CustodyGate,
    host: bytes,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes | bytearray | None,
) -> None:
    """Check a finished request before any of it is sent.

    Raises UsageError if it contains the credential.

    Every request passes this check, with its body as a whole, even if the body is sent in pieces.
    """
    body = body or b""
    small: list[bytes | bytearray] = [host, target, *chain.from_iterable(headers)]
    if len(body) > CHUNK_SIZE:  # is not copied
        gate.check("the body", body)
    else:
        small.append(body)  # one search, for most hold nothing
    joined = b"\n".join(small)
    # A large one hides no host.
    if gate.holds(joined) or (len(joined) > FOLDABLE and any(map(gate.holds, small))):
        is_in_address, is_in_body = gate.holds(b"\n".join((host, target))), gate.holds(body)
        raise credential_leak_error(
            "the address" if is_in_address else "the body" if is_in_body else "a header"
        )


class SendWatch:
    """Records whether any byte of our request may have been sent.

    Before that, a failure provably changed nothing.
    """

    def __init__(self) -> None:
        self.has_sent = False

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Record a step of httpcore."""
        sending = event.endswith("send_request_headers.started")
        if sending and getattr(info.get("request"), "method", b"") != b"CONNECT":
            self.has_sent = True


class ResponseBuffer:
    """Collects a response up to the operation's limit, or until it is complete."""

    def __init__(self, response: httpcore.Response, operation: Operation[Any]) -> None:
        self._status = response.status
        self._headers = _decode_headers(response.headers)
        self._limit = operation.limit
        self._is_complete = operation.is_complete
        self._body = bytearray()
        self._checked_length = 0
        encoding = self._headers.get("content-encoding", "identity").lower()
        self._flaw = "" if encoding == "identity" else "is encoded, though that was not asked for"

    def add(self, piece: bytes) -> bool:
        """Add a piece of the body. Returns True if no more is needed."""
        self._body += piece
        if len(self._body) > self._limit:
            self._flaw = f"has more than {self._limit} bytes"
        return bool(self._flaw) or (
            self._is_complete is not None and self._ends_response(self._is_complete, len(piece))
        )

    def to_response(self) -> Response:
        """Return the collected response."""
        return self._make_response(b"" if self._flaw else bytes(self._body))

    def _ends_response(self, is_complete: Callable[[Response], bool], added: int) -> bool:
        """Return whether an event that just ended completes the response.

        Checks each event once.
        """
        begin = max(self._checked_length, len(self._body) - added - 3)
        ends = [blank.end() for blank in _BLANK_LINE.finditer(self._body, begin)]
        if not ends:
            return False
        events = bytes(self._body[self._checked_length : ends[-1]])
        self._checked_length = ends[-1]
        return is_complete(self._make_response(events))

    def _make_response(self, body: bytes) -> Response:
        return Response(self._status, self._headers, body, self._flaw)


def _decode_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by lower-case name.

    The values of a repeated one are joined by commas (RFC 9110, 5.3).
    """
    headers: dict[str, str] = {}
    for name, value in raw:
        key = name.decode("latin-1").lower()
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def describe_failure(error: Exception, watch: SendWatch) -> Failure | None:
    """Return the failure for an exception of the transport, or None for any other."""
    for kinds, describe in _DESCRIPTIONS:
        if isinstance(error, kinds):
            return Failure(watch.has_sent, describe(error))
    return None


def _describe_cause(error: Exception) -> str:
    return escape_text(str(error) or type(error).__name__, 200)


_DESCRIPTIONS: tuple[tuple[tuple[type[Exception], ...], Callable[[Exception], str]], ...] = (
    ((httpcore.ConnectTimeout, httpcore.PoolTimeout), lambda _: "connection timed out"),
    ((httpcore.TimeoutException, TimeoutError), lambda _: "the time ran out"),
    ((httpcore.ConnectError,), lambda error: f"no connection: {_describe_cause(error)}"),
    ((httpcore.ProxyError,), lambda error: f"the proxy refused: {_describe_cause(error)}"),
    (
        (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError),
        lambda error: f"the connection broke: {_describe_cause(error)}",
    ),
)


class Redactor:
    """Redacts every part of our credentials, in each spelling that `sealpipe.custody_gate` finds.

    Also redacts what follows our key id and a dot, and the beginning of a secret (it may be
    truncated).
    """

    def __init__(self, gate: CustodyGate) -> None:
        self._gate = gate

    def redact(
        self, result: Response | Failure, sent: bytes | bytearray | None = None
    ) -> Response | Failure:
        """Return the result without the credentials.

        A body that still has one is dropped, and `flaw` says so.

        A refusal also does not show the passcode, its verifier and the access token of the body
        that was `sent`.
        """
        if isinstance(result, Failure):
            return result._replace(detail=self._redact_text(result.detail))
        told = "\n".join(result.headers.values()).encode("utf-8", "surrogatepass")
        whole = told + b"\n" + result.body
        if self._gate.may_hold(whole) or (len(whole) > FOLDABLE and self._gate.may_hold(told)):
            headers = {name: self._redact_text(value) for name, value in result.headers.items()}
            body = self._redact_bytes(result.body)
            flaw = "repeats the credential" if body is None else result.flaw
            result = replace(result, headers=headers, body=body or b"", flaw=flaw)
        if result.body and sent is not None and result.status >= 400:
            return replace(result, body=_redact_sent(result.body, sent))
        return result

    def _redact_text(self, text: str) -> str:
        redacted = self._redact_bytes(text.encode("utf-8", "surrogatepass"))
        return (REDACTED if redacted is None else redacted).decode("utf-8", "surrogatepass")

    def _redact_bytes(self, data: bytes) -> bytes | None:
        """Return the data without the credentials; None if one would still be there."""
        redacted = replace_spans(data, self._gate.find(data), REDACTED)
        return None if self._gate.holds(redacted) else redacted


_SENT_SECRETS = re.compile(
    rb'[{,]"(?:passcode|passcode_verifier|access_token)":("(?:[^"\\]|\\.){4,}")'
)
"""Members of a body that readers of a log must not see, as JSON. A shorter value could be part of
any word.
"""


def _redact_sent(body: bytes, sent: bytes | bytearray) -> bytes:
    finder = Finder(
        json.loads(found[1]).encode(errors="surrogatepass")
        for found in _SENT_SECRETS.finditer(sent)
    )
    return replace_spans(body, finder.find(body), REDACTED)
