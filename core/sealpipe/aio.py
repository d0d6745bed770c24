"""`AsyncClient`, and the driver that runs flows with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from sealpipe.api import Failure, Operation, Resend, Response
from sealpipe.calls import Calls, check_arguments, copy_signature, make_method
from sealpipe.client_base import ClientSetup, checks_arguments, open_fields, registry
from sealpipe.flows import Do, Flow, Notify, Send, Wait
from sealpipe.flows.policy import guard
from sealpipe.flows.session import Session
from sealpipe.http.aio import AsyncServiceNetwork
from sealpipe.secret import strip_frames, strips_frames
from sealpipe.state.entry import JournaledLink

if TYPE_CHECKING:
    from sealpipe.flows.lookup import PageIterator
    from sealpipe.wire.fields import Field

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 5.0
"""Seconds that a cancelled call may still wait for the response to its current attempt."""


class _CancelledError(Exception):
    """The caller cancelled: the current attempt may end, and nothing new begins."""


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
            value: T = stop.value
            return value
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
        self.is_changing = False  # the attempt has its response; the next has not begun

    def check(self) -> None:
        if self.is_cancelled:
            raise _CancelledError


async def _shield(work: Coroutine[Any, Any, T], state: RunState) -> T:
    """Run to the end. If cancelled while a change is in progress, let the attempt end first."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        state.is_cancelled = True
        if state.is_changing:
            await asyncio.wait({task}, timeout=GRACE)
        task.cancel()
        for result in await asyncio.gather(task, return_exceptions=True):
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


class AsyncClient(Calls, ClientSetup):
    """Client of the service for asyncio. An async context manager; arguments as for `Client`.

    A task that is cancelled while a change is in progress still waits for its response, for up to 5 seconds.
    """

    _network: AsyncServiceNetwork | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._network is not None:
            await self._network.close()
            self._network = None
        await asyncio.to_thread(self.session.close)

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow of `sealpipe.flows`, and return its result."""
        state = RunState()
        return await _shield(run(guard(self.session, flow), self._send, state), state)

    async def _send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        if self._network is None:
            self._network = AsyncServiceNetwork(self.session)
        return await self._network.send(operation, timeout)

    _make_call = staticmethod(_call_hook)

    @staticmethod
    def _make_list_call(
        call: Callable[Concatenate[Session, P], PageIterator[T]],
    ) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
        return make_method(call, _iterate_rows, "AsyncIterator[{}]")


@strips_frames
@checks_arguments
async def aresolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field]:
    """Resolve references with asyncio, as `sealpipe.resolve` does. Reads sources in threads."""
    plugins = registry(ca_file)
    try:
        return await run(open_fields(references, plugins), _refuse_send, RunState())
    except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
        failure = error
    finally:
        await asyncio.to_thread(plugins.close)
    raise strip_frames(failure)


def _refuse_send(_operation: Operation[Any], _timeout: float) -> NoReturn:
    raise AssertionError("resolving makes no connection")
