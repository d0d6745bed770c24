"""`AsyncClient`, the asyncio driver of flows, and the network that it uses.

`AsyncServiceNetwork` is `sealpipe.http.ServiceNetwork` with awaits. It differs in two things that asyncio needs: a
deadline for the whole call, and a loopback check after connecting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, cast

import httpcore
from anyio import CancelScope

from sealpipe.api import Failure, Operation, Resend, Response
from sealpipe.calls import AsyncCalls, copy_signature, make_method
from sealpipe.calls.arguments import check_arguments
from sealpipe.client_base import ClientSetup, checks_arguments, get_service, open_fields, refuse_send, registry
from sealpipe.flows import Do, Flow, Notify, Send, Wait
from sealpipe.flows.policy import guard
from sealpipe.flows.session import Session
from sealpipe.http import make_pool_options, silence_httpcore
from sealpipe.http.connections import describe_not_loopback
from sealpipe.http.exchange import (
    CHUNK_SIZE,
    Redactor,
    ResponseBuffer,
    SendWatch,
    Service,
    build_request,
    describe_failure,
)
from sealpipe.http.rate_limiter import RateLimiter, Ticket
from sealpipe.secret import Secret, strip_frames, strips_frames
from sealpipe.state.entry import JournaledLink
from sealpipe.values import is_loopback
from sealpipe.wire.fields import Field, hidden

if TYPE_CHECKING:
    from sealpipe.flows.lookup import PageIterator

P = ParamSpec("P")
T = TypeVar("T")

REFUSAL_DELAY = 0.2
"""Seconds that the whole call gets beyond each phase: if a phase times out first, httpcore closes its socket."""


class AsyncServiceNetwork:
    """Sends operations over asyncio's sockets."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limiter = RateLimiter()
        self._redactor = Redactor(service.gate)
        self._pool = self._make_pool()

    async def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send the operation once, and return its response or failure, within `timeout` seconds."""
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
        redact = partial(self._redactor.redact, result, operation.body_in_clear)
        # To search many megabytes takes seconds: other tasks go on meanwhile.
        is_large = isinstance(result, Response) and len(result.body) > CHUNK_SIZE
        return await asyncio.to_thread(redact) if is_large else redact()

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    def _make_pool(self) -> httpcore.AsyncConnectionPool:
        backend = _LoopbackBackend() if self._service.base_url.startswith("http://") else httpcore.AnyIOBackend()
        return httpcore.AsyncConnectionPool(network_backend=backend, **make_pool_options(self._service))

    async def _exchange(
        self, pool: httpcore.AsyncConnectionPool, operation: Operation[Any], end: float
    ) -> Response | Failure:
        watch = SendWatch()

        async def note(event: str, info: dict[str, Any]) -> None:
            watch.note(event, info)

        timeout = end - time.monotonic()
        request = build_request(self._service, operation, timeout, note)
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


GRACE = 5.0
"""Seconds that a cancelled call may still wait for the response to its current attempt."""


class _CancelledError(Exception):
    """The caller has cancelled: the current attempt may finish, but no new one begins."""


async def run(
    flow: Flow[T],
    send: Callable[[Operation[Any], float], Awaitable[Response | Failure]],
    state: RunState,
) -> T:
    """Run a flow, and return its result."""
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(result) if error is None else flow.throw(error)
        except StopIteration as stop:
            return cast(T, stop.value)
        result, error = None, None
        try:
            match step:
                case Send(operation, timeout, _):
                    state.begin(operation)
                    result = await send(operation, timeout)
                case Wait(seconds):
                    state.finish_attempt()
                    await asyncio.sleep(seconds)
                case Do(work, changing):
                    state.begin_work(changing=changing)
                    result = await asyncio.to_thread(work)
                case Notify(callback):
                    state.finish_attempt()
                    outcome = callback()
                    if isinstance(outcome, Awaitable):
                        await outcome
        except BaseException as raised:  # noqa: BLE001 - the flow handles it; a cancellation releases its locks
            error = raised


class RunState:
    """Whether the caller cancelled, and whether a change is in progress whose outcome the caller needs."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_changing = False

    def begin(self, operation: Operation[Any]) -> None:
        self.check()
        self.is_changing = operation.resend is not Resend.READ

    def begin_work(self, *, changing: bool) -> None:
        if changing:
            self.check()
            self.is_changing = True

    def finish_attempt(self) -> None:
        self.check()
        self.is_changing = False  # the current attempt has its response; the next has not begun

    def check(self) -> None:
        if self.is_cancelled:
            raise _CancelledError


async def _shield(work: Coroutine[Any, Any, T], state: RunState) -> T:
    """Run to the end. If cancelled during a change, first let the current attempt finish."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        state.is_cancelled = True
        with CancelScope(shield=True):  # a scope of anyio would cancel again and again
            if state.is_changing:
                await asyncio.wait({task}, timeout=GRACE)
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, JournaledLink):
            result.keep()  # the caller will not use it: keep its entry for `resume`
        raise


def _call_hook(
    call: Callable[Concatenate[Session, P], Flow[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Make the method of a call with one result."""

    @wraps(call)
    async def method(self: AsyncClient, /, *args: P.args, **options: P.kwargs) -> T:
        try:
            check_arguments(call, args, options, skip=1)
            return await self.run(call(self.session, *args, **options))
        except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
            failure = error
        del args, options
        raise strip_frames(failure)

    copy_signature(method, call, "{}")
    return method


async def _iterate_rows(client: AsyncClient, pages: PageIterator[T]) -> AsyncIterator[T]:
    while not pages.is_done:
        for row in await _fetch_page(client, pages):
            yield row


async def _fetch_page(client: AsyncClient, pages: PageIterator[T]) -> list[T]:
    try:
        return await client.run(pages.fetch_next())
    except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
        failure = error
    raise strip_frames(failure)


class AsyncClient(AsyncCalls, ClientSetup):
    """Client of the service for asyncio. An async context manager; arguments as for `Client`.

    A task that is cancelled while a change is in progress still waits for its response, for up to 5 seconds.
    """

    @cached_property
    def _network(self) -> AsyncServiceNetwork:
        return AsyncServiceNetwork(get_service(self.session))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if "_network" in vars(self):  # it was opened
            await self._network.close()
            del self._network
        await asyncio.to_thread(self.session.close)

    def with_origin(self, *origin: tuple[str, str]) -> Self:
        """Return a client on the same connections whose events also have these names and values. It is not closed."""
        client = self.from_session(self.session.with_origin(origin))
        client._network = self._network
        return client

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow of `sealpipe.flows`, and return its result."""
        state = RunState()
        return await _shield(run(guard(self.session, flow), self._send, state), state)

    async def _send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        return await self._network.send(operation, timeout)

    _make_call = staticmethod(_call_hook)

    @staticmethod
    def _make_list_call(
        call: Callable[Concatenate[Session, P], PageIterator[T]],
    ) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
        return make_method(call, _iterate_rows, "AsyncIterator[{}]")


@strips_frames
@checks_arguments
async def aresolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field[Secret]]:
    """Resolve references with asyncio, as `sealpipe.resolve` does. Reads sources in threads."""
    plugins = registry(ca_file)
    try:
        fields = await run(open_fields(references, plugins), refuse_send, RunState())
        return [hidden(field) for field in fields]
    except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
        failure = error
    finally:
        await asyncio.to_thread(plugins.close)
    raise strip_frames(failure)
