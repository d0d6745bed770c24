"""The network for code that blocks: operations out, what came back in. `aio` is its twin, with awaits."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpcore

from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.http.deadline import Deadline, DeadlineBackend
from sealpipe.http.exchange import AnswerBuffer, SendWatch, build_request, describe_failure, pool_options
from sealpipe.http.rate_limiter import RateLimiter, Ticket
from sealpipe.http.redaction import Redactor, quiet

if TYPE_CHECKING:
    from sealpipe.flows.session import Session


class Network:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, session: Session, watch: Callable[[], SendWatch] = SendWatch) -> None:
        self._session = session
        self._watch = watch
        self._deadline = Deadline()
        self._limiter = RateLimiter()
        self._redactor = Redactor(session.credential, session.previous)
        self._pool = self._new_pool()

    def send(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        """Send once, and return what came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        ticket = Ticket()
        for seconds in self._limiter.delays(ticket, end):
            time.sleep(seconds)
        if ticket.refusal is not None:
            return ticket.refusal
        if operation.own_connection:
            with closing(self._new_pool()) as pool:
                result = self._exchange(pool, operation, end)
        else:
            result = self._exchange(self._pool, operation, end)
        self._limiter.record(ticket, result)
        return self._redactor.redact(result)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _new_pool(self) -> httpcore.ConnectionPool:
        backend = DeadlineBackend(self._deadline, loopback_only=self._session.base_url.startswith("http://"))
        return httpcore.ConnectionPool(network_backend=backend, **pool_options(self._session))

    def _exchange(self, pool: httpcore.ConnectionPool, operation: Operation[Any], end: float) -> Answer | Failure:
        watch = self._watch()
        request = build_request(self._session, operation, end - time.monotonic(), watch.note)
        try:
            with quiet(), self._deadline.until(end):
                response = pool.handle_request(request)
                try:
                    buffer = AnswerBuffer(response, operation)
                    for piece in response.iter_stream():
                        if buffer.add(piece):
                            break
                finally:
                    response.close()
            return buffer.answer()
        except Exception as error:
            failure = describe_failure(error, watch)
            if failure is None:
                raise
            return failure
