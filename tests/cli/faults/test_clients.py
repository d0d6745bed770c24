"""The same table through `Client` and `AsyncClient`: the promised exception, and an entry that
`resume` finishes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.faults.ahead import WAITS_FOR_ALL, ahead, selected
from cli.faults.table import FINER, LATE, ROWS, Row
from sealpipe import AsyncClient, Client, Field, errors
from sealpipe.api.operation import Credential
from sealpipe.share.post import Share
from sealpipe.state.entry import Entry
from sealpipe.state.outbox import Outbox
from sealpipe_rehearsal.running_service import RunningService
from support import faults
from support.faulty import Faulty, Received, same_bytes
from support.job import Job


@dataclass
class Tried:
    """One row through one client. `link` is what the share gave, else what resuming gave."""

    job: Job
    error: Exception | None
    link: str
    seconds: float
    entries: list[str]
    shares: list[str]
    sent: list[Received]
    resumed: list[Received]
    left: list[str]
    finally_: list[str]


class Case:
    """A row about to be tried: server, job, and the arguments of the clients."""

    def __init__(self, row: Row, place: Path, service: RunningService, stack: ExitStack) -> None:
        self.row = row
        self.server = stack.enter_context(Faulty(service.address, *row.faults, then=row.then))
        if not row.listens:
            self.server.refuse()
        self.job = Job(place, service, self.server.base_url)
        self.arguments: dict[str, Any] = {
            "api_key": self.job.api_key,
            "base_url": self.server.base_url,
            "link_base_url": service.link_base_url,
            "deadline": row.deadline,
        }
        self.field = Field("DB_PASSWORD", self.job.secret, type="password")
        self.error: Exception | None = None
        self.link = ""
        self.began = time.monotonic()

    def tried(self) -> Tried:
        """Call it when the share has ended, with the fault still there."""
        job = self.job
        seconds = time.monotonic() - self.began
        return Tried(
            job,
            self.error,
            self.link,
            seconds,
            job.entries(),
            job.shares(),
            self.sent(),
            [],
            job.left(),
            [],
        )

    def sent(self) -> list[Received]:
        return self.server.received()

    def entry(self, entry_id: str) -> Entry:
        entry = Outbox(self.job.outbox, Credential.parse(self.job.api_key)).open(entry_id)
        assert not isinstance(entry, str), entry
        return entry

    def finished(self, tried: Tried) -> Tried:
        """Call it when resuming has ended."""
        tried.link, tried.resumed = self.link, self.sent()
        tried.finally_, tried.left = self.job.shares(), self.job.left()
        return tried

    def take(self, share: Share) -> None:
        self.link = share.link.reveal()
        share.delivered()


def by_client(case: Case) -> Tried:
    with Client(**case.arguments) as client:
        try:
            case.take(client.share([case.field], outbox=case.job.outbox))
        except errors.SealpipeError as error:
            case.error = error
        tried = case.tried()
        if not tried.entries:
            return tried
    case.server.mend()
    with Client(**case.arguments) as client:
        case.take(client.resume(case.entry(tried.entries[0])))
    return case.finished(tried)


async def by_async_client(case: Case) -> Tried:
    async with AsyncClient(**case.arguments) as client:
        try:
            case.take(await client.share([case.field], outbox=case.job.outbox))
        except errors.SealpipeError as error:
            case.error = error
        tried = await asyncio.to_thread(case.tried)
        if not tried.entries:
            return tried
    case.server.mend()
    async with AsyncClient(**case.arguments) as client:
        case.take(await client.resume(case.entry(tried.entries[0])))
    return await asyncio.to_thread(case.finished, tried)


CLIENTS: dict[str, Callable[[Case], Tried]] = {
    "Client": by_client,
    "AsyncClient": lambda case: asyncio.run(by_async_client(case)),
}


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest,
    service: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, str], Future[Tried]]]:
    def work(row: Row, client: str, place: Path) -> Tried:
        with ExitStack() as stack:
            return CLIENTS[client](Case(row, place, service, stack))

    with ahead(
        ((row.name, client), row, partial(work, row, client, tmp_path_factory.mktemp("job")))
        for row in selected(request, "row")
        for client in selected(request, "client")
    ) as begun:
        yield begun


@WAITS_FOR_ALL
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("row", ROWS + FINER, ids=str)
def test_a_fault_raises_what_is_promised_and_its_entry_makes_exactly_one_share(
    row: Row, client: str, results: dict[tuple[str, str], Future[Tried]]
) -> None:
    tried = results[row.name, client].result()
    assert type(tried.error) is (row.ends or type(None)), repr(tried.error)
    assert len(tried.shares) == row.shares
    assert row.sent[0] <= len(tried.sent) <= row.sent[1]
    assert same_bytes(tried.sent)
    assert tried.seconds < row.deadline + LATE
    assert len(tried.entries) == int(row.kept)
    assert tried.left == []
    if row.ends is not None:
        assert isinstance(tried.error, errors.ServiceError)
        assert tried.error.outbox_id == (tried.entries[0] if row.kept else None)
        assert tried.error.unclear is row.kept
    if row.kept:
        assert len(tried.finally_) == 1
        assert len(tried.resumed) == len(tried.sent) + 1
        assert same_bytes(tried.resumed)
    if row.kept or row.ends is None:
        assert tried.job.opens(tried.link)


def arguments(job: Job, server: Faulty, deadline: float = 20.0) -> dict[str, Any]:
    return {
        "api_key": job.api_key,
        "base_url": server.base_url,
        "link_base_url": job.service.link_base_url,
        "deadline": deadline,
    }


def test_without_an_outbox_nothing_is_written_and_no_entry_is_named(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.reset_after)
    job = job_at(server)
    with (
        Client(**arguments(job, server)) as client,
        pytest.raises(errors.OutcomeUnknownError) as raised,
    ):
        client.share([Field("DB_PASSWORD", job.secret)])
    assert raised.value.outbox_id is None
    assert raised.value.unclear
    assert "sealpipe resume" not in raised.value.remedy
    assert not job.state.exists()
    assert len(job.shares()) == 1


def test_a_429_makes_the_whole_client_wait(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.envelope(429, 107, {"Retry-After": "1"}))
    job = job_at(server)
    with Client(**arguments(job, server, 60)) as client:
        client.list_shares()
        server.plan(faults.envelope(429, 107, {"Retry-After": "1"}))
        with ThreadPoolExecutor(4) as pool:
            first = pool.submit(client.list_shares)
            while len(server.received()) < 3:
                time.sleep(0.005)
            time.sleep(0.1)
            client.list_shares()
            first.result()
    refused, *later = [request.at for request in server.received()[2:]]
    assert len(later) == 2
    assert min(later) - refused > 0.9


@pytest.mark.parametrize("seconds", ["99999999", "30"])
def test_a_call_after_a_long_429_is_rate_limited_and_not_unreachable(
    seconds: str, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.envelope(429, 107, {"Retry-After": seconds}))
    job = job_at(server)
    with Client(**arguments(job, server)) as client:
        for _ in range(2):
            with pytest.raises(errors.RateLimitError) as raised:
                client.list_shares()
            assert raised.value.retry_after is not None
            assert raised.value.retry_after > 20
