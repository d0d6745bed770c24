"""`AsyncClient`: the methods of `Client`, each in a worker thread; and `aresolve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from sealpipe.calls import AsyncCalls, copy_signature, make_method
from sealpipe.calls.arguments import check_arguments
from sealpipe.client_base import ClientSetup, checks_arguments, open_fields, registry
from sealpipe.flows.session import Session
from sealpipe.http import MAX_CONNECTIONS
from sealpipe.registry.calls import CLOSING_TIME
from sealpipe.secret import Secret, strip_frames, strips_frames
from sealpipe.wire.fields import Field, hidden
from sealpipe.workers import Call, Workers

if TYPE_CHECKING:
    from sealpipe.flows.lookup import PageIterator

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 5.0
"""Seconds that a cancelled task may still wait for the end of a change that is under way."""


Start = Callable[Concatenate[Session, P], T]
"""A call of `sealpipe.calls`."""


def _make_method(call: Start[P, T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Make the method of a call with one result."""

    @wraps(call)
    async def method(self: AsyncClient, /, *args: P.args, **options: P.kwargs) -> T:
        try:
            return await self._work(partial(self._carry_out, call, args, options))
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
        return await client.run(pages.fetch_next)
    except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
        failure = error
    raise strip_frames(failure)


class AsyncClient(AsyncCalls, ClientSetup):
    """Client of the service for asyncio. An async context manager; arguments as for `Client`.

    Each call blocks in a thread of its own. Up to ten are at work at once, and the others wait for their turn, which
    counts against the deadline; a call that only waits (for a submission, or before another try) leaves its turn to
    others. A task that is cancelled while a change is in progress still waits for its response, for up to 5 seconds;
    any other ends at once. In the thread nothing begins any more.
    """

    @cached_property
    def _workers(self) -> Workers:
        return Workers(MAX_CONNECTIONS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, Exception):
            await self.close()
            return
        with suppress(TimeoutError):  # a source that hangs must not delay the end of a program
            async with asyncio.timeout(CLOSING_TIME):
                await self.close()

    async def close(self) -> None:
        """End the calls that are at work, as if their tasks were cancelled, and close the connections.

        These calls raise ConnectError; OutcomeUnknownError where a change had begun.
        """
        await self._workers.end_calls()
        await self._workers.run(lambda _: self.session.close(), timeout=None, grace=GRACE)
        self._workers.close()

    def with_origin(self, *origin: tuple[str, str]) -> Self:
        """Return a client on the same connections whose events also have these names and values. It is not closed."""
        client = self.from_session(self.session.with_origin(origin))
        client._workers = self._workers
        return client

    async def run(self, work: Callable[[], T]) -> T:
        """Do work in a thread, and return its result."""
        return await self._work(lambda _: work())

    async def _work(self, work: Callable[[Call], T]) -> T:
        return await self._workers.run(work, timeout=self.session.deadline, grace=GRACE)

    def _carry_out(self, start: Start[..., T], args: Sequence[Any], options: Mapping[str, Any], call: Call) -> T:
        """Carry out a call in its thread."""
        check_arguments(start, args, options, skip=1)
        session = self.session.after_waiting(call.waited)
        return start(session, *args, **options)

    _make_call = staticmethod(_make_method)

    @staticmethod
    def _make_list_call(
        call: Callable[Concatenate[Session, P], PageIterator[T]],
    ) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
        return make_method(call, _iterate_rows, "AsyncIterator[{}]")


@strips_frames
@checks_arguments
async def aresolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field[Secret]]:
    """Resolve references with asyncio, as `sealpipe.resolve` does. Reads sources in threads."""

    def resolve(_call: Call) -> list[Field[Secret]]:
        with closing(registry(ca_file)) as plugins:
            return [hidden(field) for field in open_fields(references, plugins)]

    try:
        return await Workers(1).run(resolve, timeout=None, grace=GRACE)
    except Exception as error:  # noqa: BLE001 - as `strips_frames` does it
        failure = error
    raise strip_frames(failure)
