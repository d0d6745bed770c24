"""Works on every batch of a PostgreSQL database: any number of workers, on any machines.

Needs `sealpipe[batch]`.

Queue, locks, delays, heartbeats and dead workers are procrastinate's. A job is only a reminder to
look at a row, and holds two ids; the row is the truth. So a job may run twice, or get lost: what is
due and has no job gets one. No job is scheduled for later, because that would go by the clock of a
machine.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import psycopg
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job, Status
from psycopg.errors import UndefinedFunction, UndefinedTable
from psycopg_pool import AsyncConnectionPool

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.postgres import REFUSED_REMEDY, check_address, is_passing
from sealpipe.batch.database.records import Batch, ConflictError
from sealpipe.batch.database.sealing import ID_SIZE
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import LEASE, Change, Engine
from sealpipe.batch.engine.breaker import POSTPONEMENT, Breaker
from sealpipe.batch.engine.high_water import check_high_water, note_high_water
from sealpipe.batch.engine.notify import PeriodicNews, check_allowed
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.batch.engine.run import MAX_THREADS, choose_threads, learn_limit
from sealpipe.batch.engine.sync import restore_definition
from sealpipe.errors import StateError
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.workers import Workers

SWEEP_SECONDS: Final = 15.0
"""Between two looks for rows that are due and have no job, and for jobs of workers that died."""
_TOP_UP_SECONDS: Final = 2.0
"""The same while more rows are due than have jobs."""
MAX_JOBS: Final = 100
"""Jobs that wait: enough for all workers until one of them makes more."""
POLL_SECONDS: Final = 0.5
"""Between two looks of an idle worker for jobs."""
HEARTBEAT_SECONDS: Final = 5.0
STALLED_SECONDS: Final = 20.0
"""A worker without a heartbeat for so long is dead: its rows are free with the next sweep."""
SILENCE_SECONDS: Final = 30.0
"""A worker ends if its database has not answered for so long, which is longer than a restart."""
_GRACE_SECONDS: Final = 90.0  # a step that has begun may end
_CHANGE_SECONDS: Final = 5.0
"""Seconds that a change may take that is under way even then."""
_TASK: Final = "sealpipe.advance"


def prepare_queue(address: Secret, ca_file: Path | None = None) -> None:
    """Make procrastinate's tables if they are missing. Raises StateError."""
    asyncio.run(_apply_schema(address, ca_file))


async def _apply_schema(address: Secret, ca_file: Path | None) -> None:
    _silence_libraries()
    app = _make_app(address, ca_file)
    try:
        async with app.open_async():
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()
    except ConnectorException as error:
        failure = _make_queue_error(error, "PostgreSQL database")
    else:
        return
    raise failure


def _make_app(address: Secret, ca_file: Path | None, size: int = 2) -> App:
    settings = check_address(address, ca_file)
    connector = PsycopgConnector(pool_factory=_Pool, kwargs=settings, min_size=1, max_size=size)
    return App(connector=connector)


class _Pool(AsyncConnectionPool):
    """Waits once for a database that does not answer: a worker that ends for it has more calls."""

    _since: float | None = None
    """When the first of the calls began that wait for it."""

    async def getconn(self, timeout: float | None = None) -> psycopg.AsyncConnection:
        now = time.monotonic()
        self._since = self._since or now
        # Nothing at all would refuse a connection that is ready, too.
        left = max(self._since + SILENCE_SECONDS - now, 0.1)
        connection = await super().getconn(left if timeout is None else min(timeout, left))
        self._since = None
        return connection


def _is_passing(error: ConnectorException) -> bool:
    cause = error.__cause__
    return not isinstance(cause, psycopg.Error) or is_passing(cause)


def _make_queue_error(error: ConnectorException, database: str) -> StateError:
    """Tell why the queue cannot be used, without the database's words: they may quote values."""
    cause = error.__cause__
    if _is_passing(error):
        return DatabaseUnavailableError(
            f"the {database} does not answer",
            remedy="check that it runs, then start this again: nothing is lost",
        )
    if isinstance(cause, UndefinedTable | UndefinedFunction):
        return StateError(
            f"the {database} has no queue of batches",
            remedy="make it with `sealpipe batch database init`",
        )
    assert isinstance(cause, psycopg.Error)  # noqa: S101 - any other is passing
    return StateError(
        (
            f"the {database} refused a statement of the queue of batches: "
            f"{type(cause).__name__} ({cause.sqlstate})"
        ),
        remedy=REFUSED_REMEDY,
    )


def _identify(batch: Batch) -> tuple[int, int]:
    """Return what identifies a batch, also against a purged one of the same name."""
    return batch.created_at, batch.version


def _name_holder(job: int) -> str:
    """Return the name under which a job holds its row: whoever removes the job frees the row."""
    return f"job/{job}"


def _silence_libraries() -> None:
    """Show nothing that the libraries log, unless the program has its own handlers.

    Python would print it.

    They log each attempt to connect, with tracebacks, and what is in a queue that somebody changed.
    What matters is raised, and told in one line.
    """
    asyncio.get_running_loop().set_exception_handler(_report_task)
    for name in ("procrastinate", "psycopg"):
        logger = logging.getLogger(name)
        if not logger.hasHandlers():
            logger.addHandler(logging.NullHandler())


def _report_task(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong in a task that nobody waits for, without the error's words.

    They may quote values.

    Nothing of the libraries' tasks that the end of a connection ends: the worker says that once.
    """
    error = context.get("exception")
    if not isinstance(error, psycopg.Error | ConnectorException):
        kind = "" if error is None else f": {type(error).__name__}"
        loop.default_exception_handler({"message": f"{context['message']}{kind}"})


class Worker:
    """Takes rows of every batch that its credential opens, until it is stopped."""

    def __init__(
        self,
        session: Session,
        store: BatchStore,
        address: Secret,
        *,
        threads: int | None = None,
        on_change: Callable[[Batch, Change], object] = lambda _, __: None,
    ) -> None:
        self._store = store
        self._address = address
        self._threads = threads
        self._on_change = on_change
        self._transport = RatedTransport(session.transport, store.rate)
        self._session = session.with_transport(self._transport)
        # A source that hangs must not hold a worker that was stopped: its thread is left behind,
        # and begins nothing any more.
        self._workers = Workers(MAX_THREADS)
        self._engines: dict[str, Engine] = {}
        self._stop: asyncio.Event | None = None
        self._is_stopped = False
        self._breakers_made_at = 0
        self._news = PeriodicNews(store, lambda batch: self._engines[batch.id], on_change)
        key_id = session.credential.key_id
        self._queue = f"sealpipe-{key_id}"  # a worker takes no job of a batch that it cannot open

    def run(self, seconds: float | None = None) -> None:
        """Work until `stop`, or for so many seconds. Raises StateError."""
        asyncio.run(self._run(seconds))

    @property
    def calls(self) -> int:
        """How many calls it has sent to the service."""
        return self._transport.calls

    def stop(self) -> None:
        """Take no further row; what has begun ends.

        May be called in a signal's handler, on the worker's thread.
        """
        self._is_stopped = True
        if self._stop is not None:
            self._stop.set()

    async def _run(self, seconds: float | None) -> None:
        self._stop = asyncio.Event()
        if self._is_stopped:
            self._stop.set()
        _silence_libraries()
        number = self._threads or choose_threads(self._store.rate.read().calls_per_minute)
        app = _make_app(self._address, self._session.ca_file, number + 3)
        self._task = app.task(name=_TASK, queue=self._queue, pass_context=True)(self._advance)
        try:
            async with app.open_async():
                await asyncio.to_thread(self._refresh)
                for engine in list(self._engines.values())[:1]:
                    await asyncio.to_thread(learn_limit, engine)
                try:
                    await self._work(app, number, seconds)
                finally:
                    self._workers.close()
        except ConnectorException as error:
            failure = _make_queue_error(error, self._store.description)
        else:
            await asyncio.to_thread(self._tell, is_last=True)
            return
        raise failure

    async def _work(self, app: App, number: int, seconds: float | None) -> None:
        assert self._stop is not None  # noqa: S101 - its caller made it
        tasks = [
            asyncio.create_task(
                app.run_worker_async(
                    queues=[self._queue],
                    concurrency=number,
                    # A pooler that gives a connection to each transaction passes on no notices.
                    listen_notify=False,
                    fetch_job_polling_interval=POLL_SECONDS,
                    install_signal_handlers=False,
                    update_heartbeat_interval=HEARTBEAT_SECONDS,
                    stalled_worker_timeout=STALLED_SECONDS,
                    shutdown_graceful_timeout=_GRACE_SECONDS,
                    delete_jobs="always",
                )
            ),
            asyncio.create_task(self._sweep_forever(app)),
            asyncio.create_task(self._stop.wait()),
        ]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _sweep_forever(self, app: App) -> None:
        refreshed_at = -math.inf
        while True:
            has_more = False
            try:
                is_time = time.monotonic() - refreshed_at >= SWEEP_SECONDS
                if is_time:
                    await asyncio.to_thread(self._refresh)
                    refreshed_at = time.monotonic()
                has_more = await self._sweep(app)
                if is_time:
                    await asyncio.to_thread(self._tell)
            except DatabaseUnavailableError:
                pass  # the next sweep finds what this one missed
            except ConnectorException as error:
                if not _is_passing(error):
                    raise
            await asyncio.sleep(min(_TOP_UP_SECONDS, SWEEP_SECONDS) if has_more else SWEEP_SECONDS)

    async def _sweep(self, app: App) -> bool:
        """Remove the jobs of dead workers, and make jobs for due and free rows that have none.

        There are never many jobs, however many rows are due. Returns whether more rows may be due
        than have jobs.
        """
        for job in await app.job_manager.get_stalled_jobs(
            queue=self._queue, seconds_since_heartbeat=STALLED_SECONDS
        ):
            await asyncio.to_thread(self._release, job)
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
        room = MAX_JOBS - sum(
            int(each["todo"]) for each in await app.job_manager.list_queues_async(self._queue)
        )
        for engine in list(self._engines.values()):
            rows = await asyncio.to_thread(self._list_due, engine, room) if room > 0 else ()
            for row in rows:
                await self._defer(engine.batch.id, row)
            room -= len(rows)
        return room <= 0

    def _release(self, job: Job) -> None:
        """Give back the row that a dead worker held for a job. Blocks."""
        engine = self._engines.get(str(job.task_kwargs.get("batch")))
        if engine is not None and job.id is not None:
            row_id = str(job.task_kwargs.get("row"))
            with suppress(ConflictError):  # the batch was purged meanwhile
                self._store.release_from(engine.batch, row_id, _name_holder(job.id))

    def _list_due(self, engine: Engine, number: int) -> list[str]:
        """List up to so many rows that are due and free, from anywhere.

        Those at the beginning have jobs already.
        """
        now, start = self._store.now(), os.urandom(ID_SIZE // 2).hex()
        found: dict[str, None] = {}
        for after in (start, ""):
            rows = (
                self._store.list_rows(engine.batch, due_by=now, after=after)
                if len(found) < number
                else ()
            )
            found |= dict.fromkeys(
                islice((row.id for row in rows if row.held_until <= now), number - len(found))
            )
        return list(found)

    def _refresh(self) -> None:
        """Open batches that are new or have changed, and forget those that are gone. Blocks.

        Raises StateError if the database was restored.
        """
        now = self._store.now()
        is_late = now - self._breakers_made_at > POSTPONEMENT
        batches = self._store.list_batches()
        self._engines = {
            each.id: self._engines[each.id] for each in batches if each.id in self._engines
        }
        for batch in batches:
            check_high_water(self._store, batch)
            engine = self._engines.get(batch.id)
            if engine is None or _identify(engine.batch) != _identify(batch):
                check_allowed(self._session, batch.name)
                engine = Engine(self._session, self._store, batch, restore_definition(batch))
                self._engines[batch.id] = engine
            elif is_late:
                engine.breaker = Breaker()
            engine.count_waiting()
        if is_late:
            self._breakers_made_at = now

    def _tell(self, *, is_last: bool = False) -> None:
        """Tell the teams what has changed, every now and then and at the end; note how far all is.

        Blocks.
        """
        for engine in list(self._engines.values()):
            self._news.tell(engine.batch, is_last=is_last)
            for warning in engine.row_limit.take_warnings():
                self._on_change(engine.batch, Change("[limit]", "postponed", warning))
            note_high_water(self._store, engine.batch)

    async def _advance(self, context: JobContext, batch: str, row: str) -> None:
        """The job: do what is due for a row."""
        assert context.job.id is not None  # noqa: S101 - it was fetched from the queue
        holder = _name_holder(context.job.id)
        with suppress(DatabaseUnavailableError):  # the next sweep makes another job
            await self._workers.run(
                lambda _: self._advance_row(batch, row, holder), timeout=None, grace=_CHANGE_SECONDS
            )

    def _advance_row(self, batch: str, row_id: str, holder: str) -> None:
        """Advance a row if it is due and free. Blocks."""
        engine = self._engines.get(batch)
        held = (
            None if engine is None else self._store.claim_row(engine.batch, row_id, holder, LEASE)
        )
        if engine is not None and held is not None:
            for change in engine.advance(held).changes:
                self._on_change(engine.batch, change)

    async def _defer(self, batch: str, row: str) -> None:
        name = f"{self._queue}/{batch}/{row}"
        with suppress(AlreadyEnqueued):
            await self._task.configure(lock=name, queueing_lock=name).defer_async(
                batch=batch, row=row
            )
