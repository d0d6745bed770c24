"""Redact our credentials in whatever comes back.

A service, or a proxy in between, may repeat our request in a message, a header, a page of its own. Nothing of that
is shown or handed on before it was redacted. httpcore logs what a peer answers as it came: not while we talk to it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpcore

from sealpipe.api import Failure, Operation, Response
from sealpipe.credential import Credential
from sealpipe.http.deadline import Deadline, DeadlineBackend
from sealpipe.http.exchange import ResponseBuffer, SendWatch, build_request, describe_failure, make_pool_options
from sealpipe.http.rate_limiter import RateLimiter, Ticket
from sealpipe.secret_scan import LARGE, REDACTED, SecretFinder

if TYPE_CHECKING:
    from sealpipe.flows.session import Session

REDACTION_FLAW = "repeats the credential"


class Redactor:
    """Finds all parts of our credentials, however they are written: see `sealpipe.secret_scan`.

    What follows our key id and a dot is taken out, too, and what a secret begins with: it may have been cut short.
    """

    def __init__(self, credential: Credential, previous: Credential | None = None) -> None:
        known = [each for each in (credential, previous) if each is not None]
        secrets = [secret for each in known for secret in (each.auth_secret, each.custody_secret) if secret is not None]
        self._needles = SecretFinder(secrets, names=known)

    def redact(self, result: Response | Failure) -> Response | Failure:
        """Return the same without the credentials. A body that they cannot be removed from is dropped, with a flaw."""
        if isinstance(result, Failure):
            return result._replace(detail=self._redact_text(result.detail))
        headers = {name: self._redact_text(value) for name, value in result.headers.items()}
        body = self._redact_bytes(result.body)
        if body is None:
            return replace(result, headers=headers, body=b"", flaw=REDACTION_FLAW)
        return replace(result, headers=headers, body=body)

    def _redact_text(self, text: str) -> str:
        redacted = self._redact_bytes(text.encode("utf-8", "surrogatepass"))
        return (REDACTED if redacted is None else redacted).decode("utf-8", "surrogatepass")

    def _redact_bytes(self, data: bytes) -> bytes | None:
        """The bytes without them; None where one would still be there."""
        spans = self._needles.spans(data)
        if not spans and len(data) <= LARGE:
            return data
        parts, done = [], 0
        for start, end in spans:
            parts += [data[done:start], REDACTED]
            done = end
        redacted = b"".join([*parts, data[done:]])
        return None if self._needles.within(redacted) else redacted


_is_our_exchange = ContextVar("_in_our_exchange", default=False)


def _is_loggable(_: logging.LogRecord) -> bool:
    return not _is_our_exchange.get()


logging.getLogger("httpcore.http11").addFilter(_is_loggable)  # all that is read from a peer is logged there


@contextmanager
def silence_httpcore() -> Iterator[None]:
    """Keep httpcore from logging what this exchange reads; other uses of httpcore in the program are logged."""
    token = _is_our_exchange.set(True)
    try:
        yield
    finally:
        _is_our_exchange.reset(token)


class ServiceNetwork:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, session: Session, watch: Callable[[], SendWatch] = SendWatch) -> None:
        self._session = session
        self._make_watch = watch
        self._deadline = Deadline()
        self._limiter = RateLimiter()
        self._redactor = Redactor(session.credential, session.previous)
        self._pool = self._make_pool()

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send once, and return what came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        ticket = Ticket()
        for seconds in self._limiter.iterate_delays(ticket, end):
            time.sleep(seconds)
        if ticket.refusal is not None:
            return ticket.refusal
        if operation.own_connection:
            with closing(self._make_pool()) as pool:
                result = self._exchange(pool, operation, end)
        else:
            result = self._exchange(self._pool, operation, end)
        self._limiter.record(ticket, result)
        return self._redactor.redact(result)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _make_pool(self) -> httpcore.ConnectionPool:
        backend = DeadlineBackend(self._deadline, loopback_only=self._session.base_url.startswith("http://"))
        return httpcore.ConnectionPool(network_backend=backend, **make_pool_options(self._session))

    def _exchange(self, pool: httpcore.ConnectionPool, operation: Operation[Any], end: float) -> Response | Failure:
        watch = self._make_watch()
        request = build_request(self._session, operation, end - time.monotonic(), watch.note)
        try:
            with silence_httpcore(), self._deadline.hold_until(end):
                response = pool.handle_request(request)
                try:
                    buffer = ResponseBuffer(response, operation)
                    for piece in response.iter_stream():
                        if buffer.add(piece):
                            break
                finally:
                    response.close()
            return buffer.to_response()
        except Exception as error:
            failure = describe_failure(error, watch)
            if failure is None:
                raise
            return failure
