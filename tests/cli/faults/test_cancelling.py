"""A task of `AsyncClient` that is cancelled between commit and answer still learns its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import anyio
import pytest

from cli.faults.cancelled_tasks import AT_ONCE, PATIENCE, arguments, cancel, reached, share_begun
from cli.faults.resuming import assert_finished_by_resume
from sealpipe import AsyncClient, Field, async_client
from sealpipe.api.operation import Credential
from sealpipe.state.entry import Entry
from sealpipe.state.outbox import Outbox
from support import faults
from support.faulty import Exchange, Faulty, same_bytes
from support.job import Job


def entry_of(job: Job) -> Entry:
    """The one entry that is there; nobody else may have it open."""
    (entry_id,) = job.entries()
    entry = Outbox(job.outbox, Credential.parse(job.api_key)).open(entry_id)
    assert not isinstance(entry, str), entry
    return entry


async def cancelled(job: Job, server: Faulty, *, release_after: float | None) -> float:
    """Start a share, cancel it once the service has it, release the answer; how long the task took
    to end.
    """
    async with AsyncClient(**arguments(job, server)) as client:
        task = await share_begun(client, job, server)
        if release_after is not None:
            asyncio.get_running_loop().call_later(release_after, server.released.set)
        return await cancel(task)


def test_a_share_cancelled_between_commit_and_answer_notes_its_short_code(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)
    seconds = asyncio.run(cancelled(job, server, release_after=1.0))
    assert 0.25 < seconds < AT_ONCE
    entry = entry_of(job)
    assert entry.response is not None
    assert job.shares() == [entry.response["short_code"]]
    entry.close()
    # The answer is known: resuming needs no service at all.
    server.refuse()
    done = job.resume()
    assert done.code == 0
    assert len(server.received()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_a_scope_of_anyio_that_cancels_again_and_again_tears_nothing(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)

    async def share_in_a_scope() -> float:
        async with (
            AsyncClient(**arguments(job, server)) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(share_begun_and_awaited, client)
            await reached(server)
            asyncio.get_running_loop().call_later(0.3, server.released.set)
            group.cancel_scope.cancel()
            began = time.process_time()
        return time.process_time() - began

    async def share_begun_and_awaited(client: AsyncClient) -> None:
        await client.share([Field("DB_PASSWORD", job.secret, type="password")], outbox=job.outbox)

    assert asyncio.run(share_in_a_scope()) < 0.25  # it waits without work
    entry = entry_of(job)
    assert entry.response is not None
    assert job.shares() == [entry.response["short_code"]]
    entry.close()


def test_a_share_whose_answer_takes_longer_than_the_grace_is_left_for_resume(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert async_client.GRACE == 5.0
    monkeypatch.setattr(async_client, "GRACE", 0.6)
    server = proxied(faults.holds)
    job = job_at(server)
    seconds = asyncio.run(cancelled(job, server, release_after=None))
    assert 0.25 < seconds < AT_ONCE
    entry = entry_of(job)
    assert entry.response is None
    entry.close()
    server.mend()
    assert_finished_by_resume(job)
    assert len(server.received()) == 2
    assert same_bytes(server.received())


def test_nothing_new_is_sent_after_a_cancel(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """The attempt under way fails: it would be repeated, were it not cancelled."""
    server = proxied(faults.holds_before)
    job = job_at(server)
    asyncio.run(cancelled(job, server, release_after=0.2))
    time.sleep(0.7)
    assert len(server.received()) == 1
    entry = entry_of(job)
    assert entry.response is None
    entry.close()
    assert_finished_by_resume(job)


def test_a_share_cancelled_while_it_waits_for_its_next_try_ends_at_once(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def limits(exchange: Exchange) -> None:
        faults.envelope(429, 107, {"Retry-After": "50"})(exchange)
        exchange.server.committed.set()

    server = proxied(limits)
    job = job_at(server)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job, server)) as client:
            task = asyncio.ensure_future(
                client.share([Field("DB_PASSWORD", job.secret)], outbox=job.outbox)
            )
            await reached(server)
            await asyncio.sleep(0.3)
            return await cancel(task)

    assert asyncio.run(scenario()) < AT_ONCE
    assert len(server.received()) == 1


def test_reading_is_cancelled_at_once(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job, server)) as client:
            task = asyncio.ensure_future(client.list_shares())
            await reached(server)
            return await cancel(task)

    assert asyncio.run(scenario()) < AT_ONCE


def test_a_timeout_around_a_share_is_a_cancel_like_any_other(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)

    async def end(limit: asyncio.Timeout) -> None:
        """The time is over once the service has the share; its answer comes a little later."""
        await reached(server)
        limit.reschedule(asyncio.get_running_loop().time())
        asyncio.get_running_loop().call_later(0.3, server.released.set)

    async def scenario() -> None:
        async with AsyncClient(**arguments(job, server)) as client:
            field = Field("DB_PASSWORD", job.secret, type="password")
            async with asyncio.timeout(None) as limit:
                ending = asyncio.ensure_future(end(limit))
                await client.share([field], outbox=job.outbox)
            await ending

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())
    entry = entry_of(job)
    assert entry.response is not None
    entry.close()


def test_a_second_cancel_does_not_wait_any_longer_and_leaves_the_entry_unlocked(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job, server)) as client:
            task = await share_begun(client, job, server)
            task.cancel()
            await asyncio.sleep(0.2)
            return await cancel(task)

    assert asyncio.run(scenario()) < AT_ONCE
    entry_of(job).close()
    server.mend()
    assert_finished_by_resume(job)


def test_expiring_that_is_cancelled_still_ends_its_attempt(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)

    async def scenario() -> None:
        async with AsyncClient(**arguments(job, server)) as client:
            share = await client.share([Field("DB_PASSWORD", job.secret)])
            server.plan(faults.holds)
            task = asyncio.ensure_future(client.expire_share(share.short_code))
            await reached(server)
            asyncio.get_running_loop().call_later(0.2, server.released.set)
            await cancel(task)

    asyncio.run(scenario())
    assert job.live_shares() == []
    assert [request.method for request in server.received()] == ["POST", "DELETE"]
