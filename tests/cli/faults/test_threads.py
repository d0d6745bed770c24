"""A call of `AsyncClient` is a thread, which cannot be unwound: what a cancel, a turn and a
callback do to it.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar, copy_context
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cli.faults.cancelled_tasks import AT_ONCE, PATIENCE, arguments, cancel, reached, share_begun
from sealpipe import (
    AsyncClient,
    Client,
    ConnectError,
    Field,
    OutcomeUnknownError,
    SealpipeError,
    UsageError,
    aresolve,
    async_client,
)
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cancellation import Cancellation, CancelledCallError, current, make_current
from sealpipe.client_base import connect
from sealpipe.collect.results import Progress
from sealpipe.expire.request import expire_request
from sealpipe.session import Session, Transport
from sealpipe.state.entry import Entry, JournaledLink
from sealpipe.state.outbox import Outbox
from sealpipe.workers import Call, Workers
from sealpipe_plugins.local.file_sinks import FileSink
from sealpipe_plugins.local.sources import EnvSource
from sealpipe_plugins.webhook.channel import WebhookChannel
from support import faults
from support.fake_web import Receiver
from support.job import MANY, Job, Proxied, client_of, deletes, made
from support.stopwatch import stopwatch
from support.wires import Wire

SECRET = "whsec-0123456789abcdef"
TARGET = "vault:secret/app/db?mode=replace#password=Password"


def open_entry(job: Job) -> Entry | str:
    """Open the one entry that is there; a thread that ends may need a moment to unlock it."""
    (entry_id,) = job.entries()
    until = time.monotonic() + AT_ONCE
    outbox = Outbox(job.outbox, client_of(job).session.credential)
    while (entry := outbox.open(entry_id)) == "busy" and time.monotonic() < until:
        time.sleep(0.01)
    return entry


def ask(job: Job, answer: str | None = None) -> str:
    """Make a request, and submit the answer if there is one; its short code."""
    with client_of(job) as client:
        request = client.request(["Password"])
    if answer is not None:
        job.service.submitter().submit(request.collect_link, {"Password": answer})
    return request.short_code


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", SECRET)
    with Receiver() as running:
        yield running


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A Vault that takes every connection, and never answers."""
    with Wire(lambda client: client.recv(1) and select.select([], [], [], PATIENCE)) as wire:
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{wire.port}")
        monkeypatch.setenv("VAULT_TOKEN", "canary-of-a-token")
        yield wire


async def connected(wire: Wire) -> None:
    async with asyncio.timeout(PATIENCE):
        while not wire.connections:
            await asyncio.sleep(0.01)


# -- cancelled -------------------------------------------------------------------------------------


def test_a_source_that_hangs_holds_neither_its_caller_nor_a_turn(
    job: Job, hanging: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "MAX_CONNECTIONS", 1)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job)) as client:
            task = asyncio.ensure_future(
                client.share(["vault:secret/app#password"], outbox=job.outbox)
            )
            await connected(hanging)
            seconds = await cancel(task)
            async with asyncio.timeout(AT_ONCE):
                await client.list_shares()
            return seconds

    assert asyncio.run(scenario()) < AT_ONCE
    assert (job.entries(), job.shares()) == ([], [])


def test_resolving_is_cancelled_at_once(hanging: Wire) -> None:
    async def scenario() -> float:
        task = asyncio.ensure_future(aresolve(["vault:secret/app#password"]))
        await connected(hanging)
        return await cancel(task)

    assert asyncio.run(scenario()) < AT_ONCE


def test_no_message_is_sent_after_a_cancel_and_resume_sends_it(
    proxied: Proxied,
    job_at: Callable[..., Job],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The share is awaited, for its outcome; its message would be the next step."""
    monkeypatch.setattr(async_client, "GRACE", PATIENCE)
    server = proxied(faults.holds)
    job = job_at(server)

    async def scenario() -> None:
        async with AsyncClient(**arguments(job, server)) as client:
            task = await share_begun(client, job, server, send=[receiver.target])
            asyncio.get_running_loop().call_later(0.3, server.released.set)
            await cancel(task)

    asyncio.run(scenario())
    entry = open_entry(job)
    assert isinstance(entry, Entry)
    assert entry.response is not None
    assert (entry.deliveries, receiver.hooks) == ({}, [])
    entry.close()
    done = job.resume(SEALPIPE_PLUGIN_WEBHOOK__SECRET=SECRET)
    assert (done.code, len(receiver.hooks), job.left()) == (0, 1, []), done


SLOW: dict[str, tuple[type, str, tuple[bool, bool, bool]]] = {
    "source": (EnvSource, "fetch_many", (False, False, False)),
    "sink": (FileSink, "put", (True, True, False)),
    "channel": (WebhookChannel, "send", (True, True, True)),
}
"""A plugin's call that takes a while, and what there is if it is cancelled meanwhile: the copy, an
entry, a message.
"""


@pytest.mark.parametrize("kind", SLOW)
def test_the_call_of_a_slow_plugin_ends_and_no_step_follows_it(
    job: Job, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    plugin, name, left = SLOW[kind]
    call, begun, may_end = getattr(plugin, name), threading.Event(), threading.Event()
    copy = tmp_path / "copy"

    def slow(*words: Any, **options: Any) -> object:
        begun.set()
        assert may_end.wait(PATIENCE)
        return call(*words, **options)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job)) as client:
            share = client.share(
                ["env:DB_PASSWORD"],
                outbox=job.outbox,
                send=[receiver.target],
                also_to=[f"file:{copy}"],
            )
            task = asyncio.ensure_future(share)
            assert await asyncio.to_thread(begun.wait, PATIENCE)
            asyncio.get_running_loop().call_later(0.2, may_end.set)
            return await cancel(task)

    monkeypatch.setenv("DB_PASSWORD", job.secret)
    with monkeypatch.context() as patched:
        patched.setattr(plugin, name, slow)
        assert asyncio.run(scenario()) < AT_ONCE
        time.sleep(0.2)  # the thread of a source is not awaited
    assert (copy.exists(), bool(job.entries()), bool(receiver.hooks)) == left
    assert len(job.shares()) == (kind == "channel")
    if not job.entries():
        return
    entry = open_entry(job)
    assert isinstance(entry, Entry)
    assert entry.deliveries == ({0: "sent"} if kind == "channel" else {})
    entry.close()
    done = job.resume(SEALPIPE_PLUGIN_WEBHOOK__SECRET=SECRET)
    assert (done.code, len(job.shares()), len(receiver.hooks), job.left()) == (0, 1, 1, []), done


def cancelled_by(cancellation: Cancellation, work: Callable[[], object]) -> None:
    """Do work that this cancellation ends."""

    def run() -> None:
        make_current(cancellation)
        work()

    copy_context().run(run)


class CancelsDelete(Transport):
    """Its caller cancels while the DELETE waits for the rate limiter."""

    def send(
        self, session: Session, operation: Operation[Any], timeout: float
    ) -> Response | Failure:
        if operation.method == "DELETE":
            current().cancel()
            current().sleep(0)
        return super().send(session, operation, timeout)


def test_a_delete_that_was_not_sent_before_a_cancel_delays_no_other(
    proxied: Proxied, job_at: Callable[..., Job], tmp_path: Path
) -> None:
    server = proxied()
    job = job_at(server)
    code = made(job)
    with Client(**arguments(job, server)) as client:
        session = connect(client.session.with_transport(CancelsDelete()))
        with closing(session), pytest.raises(CancelledCallError):
            cancelled_by(Cancellation(), lambda: expire_request(session, code, tmp_path))
        assert deletes(server) == 0
        assert client.expire_request(code, keep=tmp_path).outcome == "expired"
    assert deletes(server) == 1


def test_calls_that_were_cancelled_leave_their_turns_and_connections(
    proxied: Proxied, job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.holds)
    job = job_at(server)

    async def scenario() -> float:
        async with AsyncClient(**arguments(job, server)) as client:
            tasks = [
                asyncio.ensure_future(client.list_shares())
                for _ in range(async_client.MAX_CONNECTIONS)
            ]
            async with asyncio.timeout(PATIENCE):
                while len(server.received()) < len(tasks):
                    await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            server.plan()
            began = time.monotonic()
            await client.list_shares()
            return time.monotonic() - began

    assert asyncio.run(scenario()) < AT_ONCE


def test_the_entry_of_a_share_that_nobody_takes_is_kept(job: Job) -> None:
    session = client_of(job).session
    outbox = Outbox(job.outbox, session.credential)
    entries: list[Entry] = []  # held here, for an entry that nobody holds is unlocked

    async def scenario() -> None:
        may_end = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work(_: Call) -> JournaledLink:
            entries.append(outbox.add(session.make_entry_meta("share"), b""))
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(PATIENCE)
            return JournaledLink(entry=entries[0])

        task = asyncio.ensure_future(Workers(1).run(work, timeout=PATIENCE, grace=0.0))
        async with asyncio.timeout(PATIENCE):
            while not entries:
                await asyncio.sleep(0.01)
        await cancel(task)
        may_end.set()
        # The thread ends its step after its caller has left; until then the loop has to run.
        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(open_entry, job) == "busy":
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert not isinstance(open_entry(job), str)


def test_closing_ends_the_calls_that_are_at_work_and_those_that_wait(
    proxied: Proxied, job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "MAX_CONNECTIONS", 2)
    server = proxied(then=faults.holds)
    job = job_at(server)

    async def scenario() -> tuple[float, list[Any]]:
        client = AsyncClient(**arguments(job, server))
        tasks = [asyncio.ensure_future(client.list_shares()) for _ in range(3)]
        async with asyncio.timeout(PATIENCE):
            while len(server.received()) < 2:
                await asyncio.sleep(0.01)
        began = time.monotonic()
        await client.close()
        took = time.monotonic() - began
        return took, await asyncio.gather(*tasks, return_exceptions=True)

    seconds, ends = asyncio.run(scenario())
    assert seconds < AT_ONCE
    assert [(type(each), each.message) for each in ends] == [
        (ConnectError, "the client was closed while this call was at work")
    ] * 3
    assert len(server.received()) == 2


def test_closing_during_a_change_leaves_it_to_resume(
    proxied: Proxied, job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "GRACE", 0.5)
    server = proxied(faults.holds)
    job = job_at(server)

    async def scenario() -> tuple[float, Any]:
        client = AsyncClient(**arguments(job, server))
        task = await share_begun(client, job, server)
        began = time.monotonic()
        await client.close()
        took = time.monotonic() - began
        (end,) = await asyncio.gather(task, return_exceptions=True)
        return took, end

    seconds, end = asyncio.run(scenario())
    assert seconds < AT_ONCE
    assert isinstance(end, OutcomeUnknownError)
    done = job.resume()
    assert (done.code, len(job.shares()), job.left()) == (0, 1, []), done


def test_a_task_that_is_cancelled_while_its_client_is_closed_is_cancelled(
    proxied: Proxied, job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.holds)
    job = job_at(server)

    async def scenario() -> bool:
        client = AsyncClient(**arguments(job, server))
        task = asyncio.ensure_future(client.list_shares())
        await reached(server)
        closing = asyncio.ensure_future(client.close())
        await asyncio.sleep(0)
        await cancel(task)
        await closing
        return task.cancelled()

    assert asyncio.run(scenario())


# -- turns -----------------------------------------------------------------------------------------


def test_a_share_does_not_wait_for_a_hundred_calls_that_wait(job: Job) -> None:
    job.service.set_account(job.account, requests_per_minute=MANY)
    codes = [ask(job) for _ in range(5)]
    waiting = 0

    def note(progress: Progress) -> None:
        nonlocal waiting
        waiting += progress.event == "waiting"

    async def scenario() -> float:
        async with AsyncClient(**arguments(job)) as client:
            wait = partial(client.collect, wait=timedelta(hours=1), on_progress=note)
            tasks = [asyncio.ensure_future(wait(codes[number % 5])) for number in range(100)]
            async with asyncio.timeout(PATIENCE):
                while waiting < len(tasks):
                    await asyncio.sleep(0.01)
            with stopwatch() as seconds:
                await client.share([Field("A", "canary")])
                took = seconds()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            return took

    assert asyncio.run(scenario()) < 1.0  # it took 0.02 s, at a load average of five


def test_a_deadline_includes_the_wait_for_a_turn(
    proxied: Proxied, job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "MAX_CONNECTIONS", 1)
    server = proxied(then=faults.holds)
    job = job_at(server)

    async def scenario() -> tuple[float, BaseException]:
        async with AsyncClient(**{**arguments(job, server), "deadline": 4.0}) as client:
            first = asyncio.ensure_future(client.list_shares())
            await reached(server)
            await asyncio.sleep(2.0)
            with stopwatch() as seconds:
                error, _ = await asyncio.gather(client.list_shares(), first, return_exceptions=True)
                assert isinstance(error, SealpipeError)
                return seconds(), error

    seconds, error = asyncio.run(scenario())
    assert seconds < 5.5, "not the two seconds of the first, and then four of its own"
    assert len(server.received()) == 2 or isinstance(error, ConnectError)


def test_a_call_whose_turn_does_not_come_has_sent_nothing() -> None:
    async def scenario() -> None:
        workers, end = Workers(1), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(_: object) -> bool:
            return asyncio.run_coroutine_threadsafe(end.wait(), loop).result(PATIENCE)

        first = asyncio.ensure_future(workers.run(hold, timeout=PATIENCE, grace=0.0))
        await asyncio.sleep(0)
        with pytest.raises(ConnectError, match="other calls of this client"):
            await workers.run(lambda _: None, timeout=0.05, grace=0.0)
        end.set()
        await first
        assert await workers.run(lambda _: "next", timeout=PATIENCE, grace=0.0) == "next"

    asyncio.run(scenario())


# -- the caller's side -----------------------------------------------------------------------------


def test_a_callback_may_call_the_client_even_if_there_is_one_turn(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "MAX_CONNECTIONS", 1)
    code = ask(job, "canary")
    found: list[str] = []

    async def scenario() -> None:
        async with AsyncClient(**arguments(job)) as client:

            async def listener(progress: Progress) -> None:
                found.append(f"{progress.event} {(await client.get_request(code)).short_code}")

            await client.collect(code, on_progress=listener)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))
    assert found == [f"answered {code}"]


def test_a_callback_is_cancelled_with_its_call(job: Job) -> None:
    code = ask(job, "canary")

    async def scenario() -> list[str]:
        events: list[str] = []
        begun = asyncio.Event()

        async def listener(_: Progress) -> None:
            begun.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise

        async with AsyncClient(**arguments(job)) as client:
            task = asyncio.ensure_future(client.collect(code, on_progress=listener))
            await begun.wait()
            assert await cancel(task) < AT_ONCE
            assert (await client.collect(code)).count == 1, "its lock is free"
        return events

    assert asyncio.run(scenario()) == ["cancelled"]


WHO = ContextVar("WHO", default="nobody")


def test_the_thread_and_the_callback_have_the_task_s_context(job: Job) -> None:
    async def scenario() -> tuple[str, str]:
        async with AsyncClient(**arguments(job)) as client:

            async def call(name: str) -> str:
                WHO.set(name)
                return await client.run(WHO.get)

            first, second = await asyncio.gather(call("ann"), call("ben"))
            return first, second

    assert asyncio.run(scenario()) == ("ann", "ben")


def test_two_event_loops_after_one_another_may_use_one_client(job: Job) -> None:
    client = AsyncClient(**arguments(job))
    assert asyncio.run(client.list_shares()).items == ()
    assert asyncio.run(client.list_shares()).items == ()
    asyncio.run(client.close())


def test_another_event_loop_is_an_error_of_one_sentence(job: Job) -> None:
    async def scenario() -> None:
        client = AsyncClient(**arguments(job))
        with pytest.raises(UsageError, match="asyncio"):
            await client.list_shares()

    trio.run(scenario)


SCRIPT = """
import asyncio, sys
from sealpipe import AsyncClient

async def main():
    async with AsyncClient.from_settings() as client:
        print("begun", flush=True)
        await client.share(["vault:secret/app#password"])

asyncio.run(main())
"""


def test_an_interrupt_ends_a_script_whose_source_hangs(job: Job, hanging: Wire) -> None:
    vault = {name: os.environ[name] for name in ("VAULT_ADDR", "VAULT_TOKEN")}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=job.terminal.with_environ(vault),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        asyncio.run(connected(hanging))
        with stopwatch(process.pid) as seconds:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
            assert seconds() < 6.0
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "thread" not in err.lower()
    assert "canary" not in err
