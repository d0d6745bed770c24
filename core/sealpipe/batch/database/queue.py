"""Which rows are due, and which of them a process works on: never two on one.

A queue is a reminder to look at a row, and holds ids; the row is the truth. That of an embedded
database is in the memory of the one process that runs batches.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Transaction, check_types


class Job(NamedTuple):
    """A row that this process works on, and the number of its job, which is never used again."""

    batch: str
    row: str
    number: int


class RowQueue:
    """The rows in work of an embedded database's one process: what it has begun ends with it.

    Where many processes work, a subclass does more. Safe for threads. Times are microseconds by the
    database's clock. Its methods raise StateError as `Database`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, str], Job] = {}
        self._numbers = count(1)

    def take_due(self, batches: Sequence[str], now: int) -> Job | None:
        """Take a row of these batches that is due and that nobody has; None if there is none."""
        with self._lock:
            for batch in batches:
                found = self._database.read(
                    sql.LIST_DUE, batch=batch, now=now, limit=len(self._jobs) + 1
                )
                for values in found:
                    (row,) = check_types(values, "t")
                    if (batch, row) not in self._jobs:
                        return self._add(batch, row)
        return None

    def take(self, batch: str, row: str) -> Job | None:
        """Take this row, whether it is due or not; None if somebody has it."""
        with self._lock:
            return None if (batch, row) in self._jobs else self._add(batch, row)

    def _add(self, batch: str, row: str) -> Job:
        job = self._jobs[batch, row] = Job(batch, row, next(self._numbers))
        return job

    def drop(self, job: Job) -> None:
        """Forget a job that has ended with its transaction. It can be repeated."""
        with self._lock:
            if self._jobs.get((job.batch, job.row)) == job:
                del self._jobs[job.batch, job.row]

    def give_back(self, job: Job, due_at: int | None) -> None:
        """End a job if that has not been done. `due_at` is when the row's next one is."""
        del due_at
        self.drop(job)

    def check(self, transaction: Transaction, job: Job) -> bool:
        """Return whether a job is still this process's, which others may have thought dead."""
        del transaction, job
        return True

    def finish(
        self, transaction: Transaction, batch: str, row: str, job: Job | None, due_at: int | None
    ) -> bool:
        """End a row's job with the transaction that saves the row, and make its next one.

        Returns False if the job was no longer this process's.
        """
        del transaction, batch, row, job, due_at
        return True

    def free_dead(self) -> bool:
        """End the jobs of processes that are dead. Returns whether there were any, or this process
        has lost one with its connection.
        """
        return False

    def add_due(self, transaction: Transaction, batches: Sequence[str], now: int) -> None:
        """Make jobs for the rows that are due and have none."""

    def remove(self, transaction: Transaction, batch: str) -> None:
        """Forget the rows of a batch."""

    def close(self) -> None:
        """Give back all that this process has. It can be repeated."""
