"""The network for code that blocks: operations out, what came back in."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.http import exchange
from sealpipe.http.deadline import Deadline, DeadlineBackend, PooledTransport
from sealpipe.http.rate_limiter import AGAIN, Pacing, Turn, held_back
from sealpipe.http.redaction import Echo

if TYPE_CHECKING:
    from sealpipe.flows.session import Session


class Network:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, session: Session, watch: Callable[[], exchange.Watch] = exchange.Watch) -> None:
        self._session = session
        self._watch = watch
        self._deadline = Deadline()
        self._pacing = Pacing()
        self._echo = Echo(session.credential, session.previous)
        self._transport = self._new_transport()

    def send(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        """What came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        turn = Turn()
        try:
            while pause := self._pacing.ask(turn):
                if late := held_back(pause, end - time.monotonic()):
                    return late
                time.sleep(min(pause, AGAIN))
        finally:
            self._pacing.forget(turn)
        result = self._exchange(operation, end)
        self._pacing.note(turn, result)
        return self._echo.out_of(result)

    def close(self) -> None:
        self._transport.close()

    def _new_transport(self) -> PooledTransport:
        here = self._session.base_url.startswith("http://")
        return PooledTransport(DeadlineBackend(self._deadline, here=here), **exchange.pool_options(self._session))

    def _exchange(self, operation: Operation[Any], end: float) -> Answer | Failure:
        if operation.own_connection:
            with closing(self._new_transport()) as transport:
                return self._exchange_over(transport, operation, end)
        return self._exchange_over(self._transport, operation, end)

    def _exchange_over(self, transport: PooledTransport, operation: Operation[Any], end: float) -> Answer | Failure:
        watch = self._watch()
        content = None if operation.body is None else exchange.pieces(operation.body)
        self._deadline.at = end
        request = exchange.request(self._session, operation, end - time.monotonic(), content, watch.note)
        try:
            response = transport.handle_request(request)
            gathering = exchange.Gathering(response, operation)
            try:
                for piece in response.iter_raw():
                    if gathering.full(piece):
                        break
            finally:
                response.close()
            return gathering.answer()
        except Exception as error:
            failure = exchange.failure(error, watch)
            if failure is None:
                raise
            return failure
        finally:
            self._deadline.at = None
