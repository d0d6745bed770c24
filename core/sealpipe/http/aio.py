"""The network for asyncio: operations out, what came back in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

from sealpipe.api.operation import Answer, Failure, Operation
from sealpipe.http import exchange
from sealpipe.http.deadline import led_away
from sealpipe.http.rate_limiter import AGAIN, Pacing, Turn, held_back
from sealpipe.http.redaction import Echo
from sealpipe.loopback import is_loopback

if TYPE_CHECKING:
    from sealpipe.flows.session import Session


class Network:
    """Sends operations over asyncio's sockets."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pacing = Pacing()
        self._echo = Echo(session.credential, session.previous)
        self._transport = _Transport(session)

    async def send(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        """What came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        turn = Turn()
        try:
            while pause := self._pacing.ask(turn):
                if late := held_back(pause, end - time.monotonic()):
                    return late
                await asyncio.sleep(min(pause, AGAIN))
        finally:
            self._pacing.forget(turn)
        result = await self._exchange(operation, end - time.monotonic())
        self._pacing.note(turn, result)
        return self._echo.out_of(result)

    async def close(self) -> None:
        await self._transport.aclose()

    async def _exchange(self, operation: Operation[Any], timeout: float) -> Answer | Failure:
        if operation.own_connection:
            async with aclosing(_Transport(self._session)) as transport:
                return await self._exchange_over(transport, operation, timeout)
        return await self._exchange_over(self._transport, operation, timeout)

    async def _exchange_over(
        self, transport: _Transport, operation: Operation[Any], timeout: float
    ) -> Answer | Failure:
        watch = exchange.Watch()

        async def note(event: str, info: dict[str, Any]) -> None:
            watch.note(event, info)

        content = None if operation.body is None else _pieces(operation.body)
        request = exchange.request(self._session, operation, timeout, content, note)
        try:
            # A little later than the timeouts of each phase: where one of those strikes, httpcore closes its socket.
            async with asyncio.timeout(timeout + 0.2):
                response = await transport.handle_async_request(request)
                gathering = exchange.Gathering(response, operation)
                try:
                    async for piece in response.aiter_raw():
                        if gathering.full(piece):
                            break
                finally:
                    await response.aclose()
            return gathering.answer()
        except Exception as error:
            failure = exchange.failure(error, watch)
            if failure is None:
                raise
            return failure


class _Transport(httpx.AsyncHTTPTransport):
    """As its twin in `sync`: httpx's transport on a pool of our own making."""

    def __init__(self, session: Session) -> None:
        backend = _Here() if session.base_url.startswith("http://") else None
        self._pool = httpcore.AsyncConnectionPool(network_backend=backend, **exchange.pool_options(session))


class _Here(httpcore.AnyIOBackend):
    """Connections to this machine only, whatever a name leads to."""

    async def connect_tcp(self, host: str, *given: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        stream = await super().connect_tcp(host, *given, **named)
        address = str(stream.get_extra_info("server_addr")[0])
        if is_loopback(address):
            return stream
        await stream.aclose()
        raise httpcore.ConnectError(led_away(host, address))


async def _pieces(body: bytes | bytearray) -> AsyncIterator[bytes]:
    for piece in exchange.pieces(body):
        yield piece
