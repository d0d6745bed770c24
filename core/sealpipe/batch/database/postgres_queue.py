"""The queue of batches on PostgreSQL, which is procrastinate's: its tables, and its way to fetch.

Each row that is due at some time has one job (`queueing_lock`), scheduled by the database's clock
for then; `lock` keeps two jobs of one row apart. Every process that works on rows is a worker with
a heartbeat. A job holds two ids, and is deleted when it has ended.

The statements are synchronous ones of the store's connection, so that a row and its next job are
one transaction. procrastinate's own worker, with a pool and an event loop, could not do that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from sealpipe.batch.database.interface import (
    ConstraintError,
    Database,
    Transaction,
)
from sealpipe.batch.database.queue import Job, RowQueue
from sealpipe.errors import StateError

HEARTBEAT_SECONDS: float = 5.0
STALLED_SECONDS: float = 20.0
"""A worker without a heartbeat for so long is dead: others go on with its rows."""

_ADD_WORKER = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
_BEAT = "UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = :worker RETURNING id"
_REMOVE_WORKER = "DELETE FROM procrastinate_workers WHERE id = :worker"
_REMOVE_DEAD_WORKERS = (
    "DELETE FROM procrastinate_workers WHERE abs(extract(epoch FROM last_heartbeat - now())) "
    "> CAST(:seconds AS double precision)"
)
"""A heartbeat of later than now is from before the database's clock was set back."""
_REMOVE_DEAD_JOBS = (
    "DELETE FROM procrastinate_jobs WHERE status = 'doing' AND task_name = {job_task} "
    "AND worker_id IS NULL RETURNING id"
)
_REMOVE_LOST_JOBS = (
    "DELETE FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = :worker "
    "AND NOT id = ANY(CAST(:jobs AS bigint[])) RETURNING id"
)
_FETCH = (
    "SELECT id, args FROM procrastinate_fetch_job_v2(CAST(:queues AS varchar[]), "
    "CAST(:worker AS bigint))"
)
_ADD_JOB_AT_ONCE = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args) "
    "VALUES (:queue, {job_task}, 1, :name, {job_arguments})"
)
_HURRY_JOBS = (
    "UPDATE procrastinate_jobs SET scheduled_at = NULL FROM sealpipe_rows WHERE "
    "status = 'todo' AND scheduled_at > now() AND queueing_lock = {job_name} "
    "AND batch = ANY(:batches) AND due_at <= :now"
)
_ADD_JOBS = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args) "
    "SELECT 'sealpipe-' || batch, {job_task}, {job_name}, {job_name}, "
    "jsonb_build_object('batch', batch, 'row', id) FROM sealpipe_rows WHERE "
    "batch = ANY(:batches) AND due_at <= :now AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs "
    "WHERE lock = {job_name} AND status IN ('todo', 'doing')) ORDER BY due_at "
    "ON CONFLICT DO NOTHING"
)
_MANY: Final = 500
_ANALYZE = "ANALYZE procrastinate_jobs"
"""Lets PostgreSQL know at once that there are many jobs: else it looks through all for each fetch,
until it finds out itself after a minute. A role that may not has a warning, and waits for that.
"""
_IS_DOING = "SELECT id FROM procrastinate_jobs WHERE id = :job AND status = 'doing'"
_END_JOB = (
    "DELETE FROM procrastinate_jobs WHERE (id = :job AND status = 'doing') "
    "OR (queueing_lock = :name AND status = 'todo') RETURNING id"
)
_REPLACE_JOB = (
    "WITH ended AS (DELETE FROM procrastinate_jobs WHERE id = :job AND status = 'doing' "
    "RETURNING id) INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, "
    "args, scheduled_at) VALUES (:queue, {job_task}, :name, :name, {job_arguments}, "
    "to_timestamp(CAST(:due_at AS double precision) / 1000000)) "
    "ON CONFLICT (queueing_lock) WHERE status = 'todo' "
    "DO UPDATE SET scheduled_at = EXCLUDED.scheduled_at RETURNING (SELECT id FROM ended)"
)
_REMOVE_QUEUE = "DELETE FROM procrastinate_jobs WHERE queue_name = :queue AND status = 'todo'"


class _TakenError(Exception):
    """Somebody has the row: what was written to take it is undone."""


class PostgresQueue(RowQueue):
    """The queue of a PostgreSQL database: of any number of processes on any machines."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._own_queue = f"sealpipe-hand-{os.urandom(8).hex()}"
        self._held: dict[int, Job] = {}
        self._worker: int | None = None
        self._beat_at = 0.0
        self._has_lost_jobs = False
        self._stop = threading.Event()

    def take_due(self, batches: Sequence[str], now: int) -> Job | None:
        del now
        queues = [_name_queue(batch) for batch in batches]
        while True:
            with self._lock:
                worker = self._register()
                try:
                    found = self._database.read(_FETCH, queues=queues, worker=worker)
                except ConstraintError:  # a row was taken by hand at this moment, or we are dead
                    self._beat(worker)
                    continue
                number, arguments = found[0]
                if number is None:
                    return None
                arguments = arguments if isinstance(arguments, dict) else {}
                job = Job(str(arguments.get("batch")), str(arguments.get("row")), number)
                self._held[number] = job
            if job.batch in batches:
                return job
            self.give_back(job, None)  # somebody else has added it

    def take(self, batch: str, row: str) -> Job | None:
        place = {"batch": batch, "row": row, "name": _name_lock(batch, row)}
        with self._lock:
            while True:
                worker = self._register()
                try:
                    with self._database.transaction() as transaction:
                        transaction.run(_ADD_JOB_AT_ONCE, queue=self._own_queue, **place)
                        found = transaction.run(_FETCH, queues=[self._own_queue], worker=worker)
                        if found[0][0] is None:
                            raise _TakenError
                except _TakenError:
                    return None
                except ConstraintError:  # it was fetched at this moment, or we are thought dead
                    self._beat(worker)
                    if self._worker is not None:
                        return None
                    continue
                job = self._held[found[0][0]] = Job(batch, row, found[0][0])
                return job

    def check(self, transaction: Transaction, job: Job) -> bool:
        return bool(transaction.run(_IS_DOING, job=job.number))

    def finish(
        self, transaction: Transaction, batch: str, row: str, job: Job | None, due_at: int | None
    ) -> bool:
        number, name = None if job is None else job.number, _name_lock(batch, row)
        if due_at is None:
            ended = transaction.run(_END_JOB, job=number, name=name)
        else:
            queue = _name_queue(batch)
            ended = transaction.run(
                _REPLACE_JOB,
                job=number,
                name=name,
                queue=queue,
                batch=batch,
                row=row,
                due_at=due_at,
            )
        return job is None or (number,) in ended

    def give_back(self, job: Job, due_at: int | None) -> None:
        if job.number not in self._held:
            return
        try:
            with self._database.transaction() as transaction:
                if self.check(transaction, job):
                    self.finish(transaction, job.batch, job.row, job, due_at)
        finally:
            self._held.pop(job.number, None)  # without the database, the next heartbeat removes it

    def drop(self, job: Job) -> None:
        self._held.pop(job.number, None)

    def add_due(self, transaction: Transaction, batches: Sequence[str], now: int) -> None:
        due = {"batches": list(batches), "now": now}
        transaction.run(_HURRY_JOBS, **due)
        if transaction.run_many(_ADD_JOBS, [due]) > _MANY:
            transaction.run(_ANALYZE)

    def free_dead(self) -> bool:
        with self._database.transaction() as transaction:
            transaction.run(_REMOVE_DEAD_WORKERS, seconds=STALLED_SECONDS)
            has_dead_jobs = bool(transaction.run(_REMOVE_DEAD_JOBS))
        has_lost_jobs, self._has_lost_jobs = self._has_lost_jobs, False
        return has_dead_jobs or has_lost_jobs

    def remove(self, transaction: Transaction, batch: str) -> None:
        transaction.run(_REMOVE_QUEUE, queue=_name_queue(batch))

    def close(self) -> None:
        self._stop.set()
        with self._lock, suppress(StateError):
            if self._worker is not None:
                self._held.clear()
                self._beat(self._worker)
                self._database.read(_REMOVE_WORKER, worker=self._worker)
            self._worker = None

    def _register(self) -> int:
        """Return this process's worker: another one if it stood still, and was thought dead."""
        is_new = self._beat_at == 0.0
        if self._worker is not None and time.monotonic() - self._beat_at > 2 * HEARTBEAT_SECONDS:
            self._beat(self._worker)
        if self._worker is None:
            (worker,) = self._database.read(_ADD_WORKER)[0]
            self._worker, self._beat_at = int(worker), time.monotonic()
        if is_new:
            threading.Thread(target=self._beat_forever, daemon=True).start()
        return self._worker

    def _beat_forever(self) -> None:
        while not self._stop.wait(HEARTBEAT_SECONDS):
            with self._lock, suppress(StateError):  # whoever works on rows tells it
                if self._worker is not None:
                    self._beat(self._worker)

    def _beat(self, worker: int) -> None:
        """Say that this process lives, and has its jobs and no others."""
        if self._database.read(_BEAT, worker=worker):
            # Lost with a connection: their rows are due, and have no job now.
            if self._database.read(_REMOVE_LOST_JOBS, worker=worker, jobs=list(self._held)):
                self._has_lost_jobs = True
        else:  # others have its rows
            self._worker = None
            self._held.clear()
        self._beat_at = time.monotonic()


def _name_queue(batch: str) -> str:
    return f"sealpipe-{batch}"


def _name_lock(batch: str, row: str) -> str:
    return f"sealpipe/{batch}/{row}"
