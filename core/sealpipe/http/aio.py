"""The network for asyncio: `sealpipe.http.ServiceNetwork` with awaits.

Differs in two things that asyncio needs: a deadline for the whole call, and a loopback check after connecting.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpcore

from sealpipe.api import Failure, Operation, Response
from sealpipe.http import Redactor, make_pool_options, silence_httpcore
from sealpipe.http.connections import describe_not_loopback
from sealpipe.http.exchange import ResponseBuffer, SendWatch, build_request, describe_failure
from sealpipe.http.rate_limiter import RateLimiter, Ticket
from sealpipe.values import is_loopback

if TYPE_CHECKING:
    from sealpipe.flows.session import Session

REFUSAL_DELAY = 0.2
"""Seconds that the whole call gets beyond each phase: if a phase times out first, httpcore closes its socket."""


class AsyncServiceNetwork:
    """Sends operations over asyncio's sockets."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._limiter = RateLimiter()
        self._redactor = Redactor(session.credential, session.previous)
        self._pool = self._make_pool()

    async def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send the operation once, and return what came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        ticket = Ticket()
        for seconds in self._limiter.iterate_delays(ticket, end):
            await asyncio.sleep(seconds)
        if ticket.refusal is not None:
            return ticket.refusal
        if operation.own_connection:
            async with aclosing(self._make_pool()) as pool:
                result = await self._exchange(pool, operation, end)
        else:
            result = await self._exchange(self._pool, operation, end)
        self._limiter.record(ticket, result)
        return self._redactor.redact(result)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    def _make_pool(self) -> httpcore.AsyncConnectionPool:
        backend = _LoopbackBackend() if self._session.base_url.startswith("http://") else httpcore.AnyIOBackend()
        return httpcore.AsyncConnectionPool(network_backend=backend, **make_pool_options(self._session))

    async def _exchange(
        self, pool: httpcore.AsyncConnectionPool, operation: Operation[Any], end: float
    ) -> Response | Failure:
        watch = SendWatch()

        async def note(event: str, info: dict[str, Any]) -> None:
            watch.note(event, info)

        timeout = end - time.monotonic()
        request = build_request(self._session, operation, timeout, note)
        try:
            with silence_httpcore():
                async with asyncio.timeout(timeout + REFUSAL_DELAY):
                    response = await pool.handle_async_request(request)
                    try:
                        buffer = ResponseBuffer(response, operation)
                        async for piece in response.aiter_stream():
                            if buffer.add(piece):
                                break
                    finally:
                        await response.aclose()
            return buffer.to_response()
        except Exception as error:
            failure = describe_failure(error, watch)
            if failure is None:
                raise
            return failure


class _LoopbackBackend(httpcore.AnyIOBackend):
    """Connects to this machine only, whatever address a name resolves to."""

    async def connect_tcp(self, host: str, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        stream = await super().connect_tcp(host, *args, **options)
        peer = stream.get_extra_info("server_addr")
        if peer is not None and is_loopback(str(peer[0])):
            return stream
        await stream.aclose()
        if peer is None:
            raise httpcore.ConnectError("the connection was reset")
        raise httpcore.ConnectError(describe_not_loopback(host, str(peer[0])))
