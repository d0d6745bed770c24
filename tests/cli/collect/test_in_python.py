"""In a program: progress told or awaited, a task that is cancelled, calls that meet, values that
stay closed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.collect.submitter import ask, values
from sealpipe import AsyncClient, Client, Secret, StateError, UsageError
from sealpipe.collect.results import Progress
from sealpipe.errors import NotConfiguredError, WriteConflictError
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.session import Session
from support.drawer import Gate
from support.job import Caller, Job, client_of
from support.leaks import shown

TARGET = "gate:place#staging_password"
PATIENCE = 20


@pytest.fixture
def gated(job: Job, tmp_path: Path) -> Iterator[Session]:
    """A session whose sink waits for us."""
    Gate.shut()
    environ = {**os.environ, "DRAWER": str(tmp_path)}
    built_in = (*BUILT_IN, "support.drawer")
    with client_of(job) as client:
        yield dataclasses.replace(
            client.session, registry=lambda: Registry(environ=environ, built_in=built_in)
        )
    Gate.opened.set()


def in_drawer(tmp_path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((tmp_path / "place.json").read_text())["values"]
    return found


def test_progress_is_reported_in_order(call: Caller, job: Job, tmp_path: Path) -> None:
    asked = ask(job)
    asked.answer()
    told: list[Progress] = []
    to = [f"file:{tmp_path}/pw#staging_password"]
    call("collect", asked.receipt, to=to, after="expire", on_progress=told.append)
    assert [each.event for each in told] == ["answered", "stored", "ended"]
    assert [each.detail for each in told] == ["", f"file:{tmp_path}/pw", "expired"]
    assert all("hunter2" not in repr(each) for each in told)
    told.clear()
    call("collect", asked.receipt, to=to, on_progress=told.append)
    assert [each.event for each in told] == ["answered", "already"]


def test_an_asynchronous_listener_is_awaited_in_the_callers_own_loop(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    told: list[str] = []

    async def within() -> None:
        loop = asyncio.get_running_loop()

        async def listener(progress: Progress) -> None:
            await asyncio.sleep(0)
            assert asyncio.get_running_loop() is loop
            told.append(progress.event)

        async with AsyncClient.from_session(client_of(job).session) as client:
            await client.collect(asked.code, on_progress=listener)

    asyncio.run(within())
    assert told == ["answered"]


def test_the_client_that_blocks_has_nowhere_to_await_it(job: Job) -> None:
    asked = ask(job)
    asked.answer()

    async def listener(_: Progress) -> None:
        raise AssertionError("never run")

    with client_of(job) as client, pytest.raises(UsageError, match="asynchronous"):
        client.collect(asked.code, on_progress=listener)


class OwnError(Exception):
    pass


@pytest.mark.parametrize("asynchronous", [False, True], ids=["Client", "AsyncClient"])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("error", [OwnError, StateError])
def test_what_a_listener_raises_ends_the_call_and_lets_the_lock_go(
    call: Caller, job: Job, tmp_path: Path, error: Any, *, state: bool, asynchronous: bool
) -> None:
    """A task's listener runs in its loop, and the thread gets its error."""
    call = dataclasses.replace(call, asynchronous=asynchronous)
    asked, folder = ask(job), tmp_path / "state" if state else None
    asked.answer()
    to = [f"file:{tmp_path}/pw#staging_password"]

    def listener(progress: Progress) -> None:
        if progress.event == "stored":
            raise error("enough")

    with pytest.raises(error, match="enough"):
        call("collect", asked.receipt, to=to, state=folder, on_progress=listener)
    quick = dataclasses.replace(call, deadline=10.0)  # a lock that is held would take all of it
    (placed,) = quick("collect", asked.receipt, to=to, state=folder).stored
    assert placed.already


@pytest.mark.parametrize("state", [False, True])
def test_a_task_that_is_cancelled_while_it_stores_has_stored_exactly_once(
    job: Job, gated: Session, tmp_path: Path, *, state: bool
) -> None:
    asked, folder = ask(job), tmp_path / "state" if state else None
    asked.answer()

    async def within() -> Any:
        async with AsyncClient.from_session(gated) as client:
            task = asyncio.ensure_future(
                client.collect(asked.receipt, to=[TARGET], after="expire", state=folder)
            )
            assert await asyncio.to_thread(Gate.entered.wait, PATIENCE)
            task.cancel()
            asyncio.get_running_loop().call_later(0.05, Gate.opened.set)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (Gate.stored, in_drawer(tmp_path)) == (1, {"staging_password": "hunter2"})
            assert asked.active(), "nothing new begins"
            return await client.collect(asked.receipt, to=[TARGET], after="expire", state=folder)

    collected = asyncio.run(within())
    assert (Gate.stored, collected.stored[0].already, asked.active()) == (1, True, False)


def test_a_task_that_is_cancelled_while_it_waits_ends_at_once_and_holds_nothing(job: Job) -> None:
    asked = ask(job)
    waiting = asyncio.Event()

    async def within() -> Any:
        async with AsyncClient.from_session(client_of(job).session) as client:
            told = client.collect(
                asked.code, wait=timedelta(hours=1), on_progress=lambda _: waiting.set()
            )
            task = asyncio.ensure_future(told)
            await asyncio.wait_for(waiting.wait(), PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 2)
            asked.answer()
            return await client.collect(asked.code)

    assert values(asyncio.run(within())) == [["hunter2", "bob"]]


@pytest.mark.parametrize("state", [False, True])
def test_two_calls_at_once_store_once(
    job: Job, gated: Session, tmp_path: Path, *, state: bool
) -> None:
    asked, folder = ask(job), tmp_path / "state" if state else None
    asked.answer()
    told = threading.Semaphore(0)

    def collects(_: int) -> Any:
        with Client.from_session(gated) as client:
            return client.collect(
                asked.receipt, to=[TARGET], state=folder, on_progress=lambda _: told.release()
            )

    with ThreadPoolExecutor(2) as pool:
        found = pool.map(collects, range(2))
        assert Gate.entered.wait(PATIENCE)
        for _ in range(2):
            assert told.acquire(timeout=PATIENCE), "both have seen the answer"
        Gate.opened.set()
        results = list(found)
    assert sorted(each.stored[0].already for each in results) == [False, True]
    assert Gate.stored == 1


def test_one_that_waits_too_long_for_the_other_says_so(
    job: Job, gated: Session, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    with ThreadPoolExecutor(1) as pool, Client.from_session(gated) as first:
        running = pool.submit(first.collect, asked.receipt, to=[TARGET], state=tmp_path / "state")
        assert Gate.entered.wait(PATIENCE)
        second = Client.from_session(dataclasses.replace(gated, deadline=0.5))
        with second, pytest.raises(StateError, match="another command is working on") as caught:
            second.collect(asked.receipt, to=[TARGET], state=tmp_path / "state")
        assert caught.value.exit_code == 2
        Gate.opened.set()
        assert running.result(PATIENCE).stored


def test_without_a_state_folder_nothing_is_written(call: Caller, job: Job, tmp_path: Path) -> None:
    asked = ask(job)
    asked.send("AA==")
    asked.answer()
    before = sorted(tmp_path.rglob("*"))
    collected = call("collect", asked.code)
    assert (collected.kept_in, len(collected.unreadable)) == (None, 1)
    assert sorted(tmp_path.rglob("*")) == before


def test_no_value_shows_in_what_is_handed_back(call: Caller, job: Job, tmp_path: Path) -> None:
    asked = ask(job)
    asked.answer("c4nary-value", "c4nary-user")
    collected = call(
        "collect", asked.receipt, to=[f"file:{tmp_path}/pw#staging_password"], after="expire"
    )
    assert values(collected) == [["c4nary-value", "c4nary-user"]]
    assert isinstance(collected.submissions[0].fields[0].value, Secret)
    for thing in (
        collected,
        collected.submissions[0],
        collected.submissions[0].fields[0],
        collected.stored[0],
    ):
        assert "c4nary" not in shown(thing)


def test_what_was_collected_is_on_the_error_of_a_sink(
    call: Caller, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    (tmp_path / "pw").write_text("x")
    with pytest.raises(WriteConflictError, match="already has other content") as caught:
        call("collect", asked.receipt, to=[f"file:{tmp_path}/pw#staging_password"])
    assert values(caught.value.collected) == [["hunter2", "bob"]]


def test_a_missing_sink_setting_fails_before_any_call(call: Caller, job: Job) -> None:
    asked = ask(job)
    before = len(job.service.seen())
    with pytest.raises((UsageError, NotConfiguredError)):
        call("collect", asked.receipt, to=["nowhere:x#user"])
    assert len(job.service.seen()) == before
