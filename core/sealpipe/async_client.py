"""`AsyncClient`: the methods of `Client`, each in a worker thread; and `aresolve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from sealpipe import lookup
from sealpipe.api.account import Access, ShareInfo
from sealpipe.api.requests import RequestInfo
from sealpipe.arguments import checks_arguments
from sealpipe.client import Client, ClientSetup
from sealpipe.client_base import open_fields, registry
from sealpipe.lookup import PageIterator
from sealpipe.network.service_network import MAX_CONNECTIONS
from sealpipe.registry.safe_calls import CLOSING_TIME
from sealpipe.secret import Secret, strips_frames_async
from sealpipe.wire.fields import Field, hidden
from sealpipe.workers import Call, Workers

P = ParamSpec("P")
T = TypeVar("T")

GRACE = 5.0
"""Seconds that a cancelled task may still wait for the end of a change that is under way."""


def _in_thread(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Make a method of `AsyncClient` that calls the same method of `Client` in a thread."""

    @strips_frames_async
    @wraps(method)
    async def awaited(self: AsyncClient, /, *args: P.args, **options: P.kwargs) -> T:
        return await self._call(method, args, options)

    return awaited


class AsyncClient(ClientSetup):
    """Client of the service for asyncio. An async context manager; arguments as for `Client`.

    Each call blocks in a thread of its own. Up to ten are at work at once, and the others wait for
    their turn, which counts against the deadline; a call that only waits (for a submission, or
    before another try) leaves its turn to others. A task that is cancelled while a change is in
    progress still waits for its response, for up to 5 seconds; any other ends at once. In the
    thread nothing begins any more.
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
        """End the running calls as if their tasks were cancelled, and close the connections.

        These calls raise ConnectError; OutcomeUnknownError where a change had begun.
        """
        await self._workers.end_calls()
        await self._workers.run(lambda _: self.session.close(), timeout=None, grace=GRACE)
        self._workers.close()

    def with_origin(self, *origin: tuple[str, str]) -> Self:
        """Return a client on the same connections whose events also have these names and values.

        It is not closed.
        """
        client = self.from_session(self.session.with_origin(origin))
        client._workers = self._workers
        return client

    async def run(self, work: Callable[[], T]) -> T:
        """Do work in a thread, and return its result."""
        return await self._workers.run(lambda _: work(), timeout=self.session.deadline, grace=GRACE)

    async def _call(
        self, method: Callable[..., T], args: Sequence[Any], options: Mapping[str, Any]
    ) -> T:
        def carry_out(call: Call) -> T:
            client = Client.from_session(self.session.after_waiting(call.waited))
            return method(client, *args, **options)

        return await self._workers.run(carry_out, timeout=self.session.deadline, grace=GRACE)

    async def _iterate(self, pages: PageIterator[T]) -> AsyncIterator[T]:
        while not pages.is_done:
            for row in await self._fetch_page(pages):
                yield row

    @strips_frames_async
    async def _fetch_page(self, pages: PageIterator[T]) -> list[T]:
        return await self.run(pages.fetch_next)

    create_share = _in_thread(Client.create_share)
    list_shares = _in_thread(Client.list_shares)
    get_share = _in_thread(Client.get_share)
    expire_share = _in_thread(Client.expire_share)
    share = _in_thread(Client.share)
    resume = _in_thread(Client.resume)
    create_request = _in_thread(Client.create_request)
    list_requests = _in_thread(Client.list_requests)
    get_request = _in_thread(Client.get_request)
    list_submissions = _in_thread(Client.list_submissions)
    request = _in_thread(Client.request)
    collect = _in_thread(Client.collect)
    collect_each = _in_thread(Client.collect_each)
    delete_request = _in_thread(Client.delete_request)
    expire_request = _in_thread(Client.expire_request)
    purge_request = _in_thread(Client.purge_request)
    get_stats = _in_thread(Client.get_stats)
    list_tools = _in_thread(Client.list_tools)
    call_tool = _in_thread(Client.call_tool)
    get_capabilities = _in_thread(Client.get_capabilities)
    share_log = _in_thread(Client.share_log)

    @checks_arguments
    def iter_shares(
        self, *, limit: int = 100, status: Literal["expired"] | None = None
    ) -> AsyncIterator[ShareInfo]:
        """Iterate over all active shares (or all expired ones), page by page, newest first."""
        return self._iterate(lookup.walk_shares(self.session, limit, status))

    @checks_arguments
    def iter_requests(
        self, *, limit: int = 100, status: Literal["expired"] | None = None
    ) -> AsyncIterator[RequestInfo]:
        """Iterate over all active requests (or all expired ones), page by page, newest first."""
        return self._iterate(lookup.walk_requests(self.session, limit, status))

    @checks_arguments
    def iter_share_log(
        self, short_code: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncIterator[Access]:
        """Iterate over a share's access log; nothing if the service does not have one."""
        return self._iterate(lookup.walk_share_log(self.session, short_code, since, until))


@checks_arguments
async def aresolve(
    references: Sequence[str], *, ca_file: str | Path | None = None
) -> list[Field[Secret]]:
    """Resolve references with asyncio, as `sealpipe.resolve` does. Reads sources in threads."""

    def resolve(_call: Call) -> list[Field[Secret]]:
        with closing(registry(ca_file)) as plugins:
            return [hidden(field) for field in open_fields(references, plugins)]

    return await strips_frames_async(Workers(1).run)(resolve, timeout=None, grace=GRACE)
