"""Runs a batch: takes rows that are due, with some threads, until nothing is due or the time is up.

A run can be killed at any moment, and the next one goes on. It needs the database and the
credential, not the file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from sealpipe.batch.database.rate import MAX_LIMIT
from sealpipe.batch.engine.advance import Advanced, Change, Engine
from sealpipe.batch.engine.breaker import Breaker
from sealpipe.batch.engine.loop import Loop, Task
from sealpipe.batch.steps.states import State
from sealpipe.errors import SealpipeError
from sealpipe.lookup import find_capabilities

EXIT_TROUBLED: Final = 18
_TROUBLED: Final = (State.FAILED, State.BLOCKED)


@dataclass(slots=True)
class RunResult:
    """What a run did.

    `counts` are the batch's rows by state; `next_due` is in microseconds, None if nothing is due.
    """

    batch: str
    changes: list[Change] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    next_due: int | None = None
    calls: int = 0
    """Calls of the service."""
    stopped: SealpipeError | None = None
    """Why some rows were left for later: an error that every other row would have got, too."""
    warnings: tuple[str, ...] = ()
    unseen: int = 0
    """How many waiting rows a look was left out for, because it would take too much of the rate."""

    @property
    def failed(self) -> int:
        """How many rows failed or are blocked."""
        return sum(self.counts.get(state, 0) for state in _TROUBLED)

    @property
    def waiting(self) -> int:
        """How many rows are not over."""
        over = (State.DONE, State.EXPIRED, State.CANCELLED)
        return sum(number for state, number in self.counts.items() if state not in over)

    @property
    def exit_code(self) -> int:
        """The exit code of the run: 18 if a row failed or is blocked."""
        return EXIT_TROUBLED if self.failed or self.stopped is not None else 0


class Runner:
    """Runs one batch once."""

    def __init__(
        self,
        engine: Engine,
        *,
        seconds: float | None = None,
        tasks: Sequence[Task] | None = None,
        looks: Sequence[str] = (),
        threads: int | None = None,
        on_change: Callable[[Change], object] = lambda _: None,
    ) -> None:
        """`looks` are the ids of rows to look at now, whatever their schedule says."""
        self._engine = engine
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self._tasks = tasks
        self._looks = [Task(row_id, is_look=True) for row_id in looks]
        self._threads = threads
        self._on_change = on_change
        self._lock = threading.Lock()
        self._loop: Loop | None = None
        self._result = RunResult(engine.batch.name)

    def run(self) -> RunResult:
        """Do what is due. Raises StateError if the database cannot be used."""
        engine, store = self._engine, self._engine.store
        engine.count_waiting()
        engine.breaker = Breaker()
        store.reconcile([engine.batch])
        tasks = [*self._list_tasks(), *self._looks]
        next_due = store.find_next_due(engine.batch)
        has_due = self._tasks is None and next_due is not None and next_due <= store.now()
        if tasks or has_due:
            learn_limit(engine)
        if tasks or has_due or self._ends_at is not None:
            self._loop = Loop(
                store,
                {engine.batch.id: engine},
                self._report,
                threads=self._threads,
                ends_at=self._ends_at,
                tasks=[(engine, task) for task in tasks],
                takes_due=self._tasks is None,
                waits=True,
                on_tick=partial(store.reconcile, [engine.batch]),
            )
            self._loop.run()
        self._result.counts = store.count_states(engine.batch)
        self._result.next_due = store.find_next_due(engine.batch)
        self._result.stopped = engine.breaker.reason
        self._result.warnings = engine.row_limit.take_warnings()
        return self._result

    def stop(self) -> None:
        """Take no further row."""
        if self._loop is not None:
            self._loop.stop()

    def _list_tasks(self) -> list[Task]:
        """List the rows to take by their ids. Those that failed before are due now."""
        found = self._engine.store.list_rows(self._engine.batch, states=[State.FAILED])
        failed = dict.fromkeys(row.id for row in found)
        tasks = [Task(row_id) for row_id in failed] if self._tasks is None else self._tasks
        return [replace(task, is_repeat=task.row_id in failed) for task in tasks]

    def _report(self, _: Engine, advanced: Advanced) -> None:
        with self._lock:
            self._result.changes += advanced.changes
        for change in advanced.changes:
            self._on_change(change)


def learn_limit(engine: Engine) -> None:
    """Ask the service for the plan's rate once, if it tells."""
    with suppress(SealpipeError):
        capabilities = find_capabilities(engine.session)
        limit = None if capabilities is None else capabilities.key.get("rate_limit_rpm")
        if isinstance(limit, int) and not isinstance(limit, bool) and limit:
            # Below zero there is no limit.
            engine.store.rate.set_limit(MAX_LIMIT if limit < 0 else min(limit, MAX_LIMIT))
