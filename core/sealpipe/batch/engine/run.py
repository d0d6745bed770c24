"""Runs a batch: takes rows that are due, with some threads, until nothing is due or the time is up.

A run can be killed at any moment, and the next one goes on. It needs the database and the
credential, not the file.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.rate import MAX_LIMIT
from sealpipe.batch.database.records import SECOND, Row
from sealpipe.batch.engine.advance import HANDS, LEASE, Advanced, Change, Engine
from sealpipe.batch.engine.breaker import Breaker
from sealpipe.batch.steps.states import State, Step
from sealpipe.errors import SealpipeError
from sealpipe.lookup import find_capabilities

MAX_THREADS: Final = 8
MAX_CLAIMED: Final = 8
"""Rows that are taken at once, at the most: each waits for a thread, and a killed run holds them
for a while.
"""
_IDLE_WAIT: Final = 0.5
"""Seconds between two looks into the database while nothing is due."""
_OUTAGE: Final = 60.0
"""Seconds that a run waits for its database."""
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


@dataclass(frozen=True, slots=True)
class Task:
    """A row to take: because it failed, is named, was approved, or is looked at now."""

    row_id: str
    steps: tuple[Step, ...] = ()
    """The steps that are approved; empty for all."""
    is_look: bool = False
    """Whether it is only looked at, whatever its schedule says."""


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
        on_change: Callable[[Change], object] | None = None,
        is_round: bool = False,
    ) -> None:
        """`looks` are the ids of rows to look at now, whatever their schedule says.

        `is_round`: one of a worker's many runs, in which failed rows wait for their time.
        """
        self._engine = engine
        self._is_round = is_round
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self._tasks = [] if tasks is None else list(tasks)
        self._takes_due = tasks is None
        self._looks = [Task(row_id, is_look=True) for row_id in looks]
        self._failed: Mapping[str, None] = {}
        """The rows that failed before this run: it repeats their step, even if it is due later."""
        self._threads = threads
        self._on_change = on_change
        self._lock = threading.Lock()
        self._claiming = threading.Lock()
        self._claimed: deque[Row] = deque()
        self._name, self._claims = os.urandom(6).hex(), count()
        self._stop = threading.Event()
        self._result = RunResult(engine.batch.name)
        self._crash: BaseException | None = None

    def run(self) -> RunResult:
        """Do what is due. Raises StateError if the database cannot be used."""
        engine, store = self._engine, self._engine.store
        if store.has_one_runner:
            free_dead_rows(engine)
        engine.count_waiting()
        engine.breaker = Breaker()
        if not self._is_round:
            failed = store.list_rows(engine.batch, states=[State.FAILED])
            self._failed = dict.fromkeys(row.id for row in failed)
        if self._takes_due:
            self._tasks = [Task(row_id) for row_id in self._failed]
        self._tasks += self._looks
        next_due = store.find_next_due(engine.batch)
        has_due = self._takes_due and next_due is not None and next_due <= store.now()
        if (self._tasks or has_due) and not self._is_round:
            learn_limit(engine)
        if self._tasks or has_due or self._ends_at is not None:
            self._run_threads()
        self._result.counts = store.count_states(engine.batch)
        self._result.next_due = store.find_next_due(engine.batch)
        self._result.stopped = engine.breaker.reason
        self._result.warnings = engine.row_limit.take_warnings()
        return self._result

    def stop(self) -> None:
        """Take no further row."""
        self._stop.set()

    def _run_threads(self) -> None:
        number = self._threads or choose_threads(self._engine.store.rate.read().calls_per_minute)
        try:
            if number == 1:
                self._work()
            else:
                threads = [threading.Thread(target=self._work, daemon=True) for _ in range(number)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        finally:
            # after a signal, each thread ends its step, which can be killed as well
            self._stop.set()
            self._release_claimed()
        if self._crash is not None:
            raise self._crash

    def _work(self) -> None:
        """Take rows until there is nothing to do."""
        outage_ends_at = 0.0
        while not self._stop.is_set():
            try:
                if not self._take():
                    return
                outage_ends_at = 0.0
            except DatabaseUnavailableError as error:
                outage_ends_at = outage_ends_at or time.monotonic() + _OUTAGE
                if time.monotonic() > outage_ends_at:
                    self._fail(error)
                    return
                self._stop.wait(_IDLE_WAIT)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                self._fail(error)
                return

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._crash = self._crash or error
        self._stop.set()

    def _take(self) -> bool:
        """Take one row and advance it. Returns whether there may be another."""
        engine, store = self._engine, self._engine.store
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            return False
        task = self._pop_task()
        if task is not None and task.is_look:
            row = store.claim_row(engine.batch, task.row_id, self._name_claim(), LEASE, due=False)
            if row is not None:
                self._report(engine.look(row))
            return True
        if task is not None:
            repeats = task.row_id in self._failed
            row = store.claim_row(
                engine.batch, task.row_id, self._name_claim(), LEASE, due=not repeats
            )
            if row is not None:
                self._report(engine.advance(row, force=repeats, steps=task.steps))
            return True
        if not self._takes_due:
            return False
        row = self._pop_claimed()
        if row is None:
            return self._wait_for_due()
        self._report(engine.advance(row))
        return True

    def _name_claim(self) -> str:
        """Return a name of its own for each claim, so that a row that is taken twice is noticed."""
        return f"{self._name}/{next(self._claims)}"

    def _pop_claimed(self) -> Row | None:
        """Return a row that is due, of several that are claimed at once."""
        with self._claiming:
            if not self._claimed:
                engine = self._engine
                self._claimed += engine.store.claim_due(
                    engine.batch, self._name_claim(), LEASE, limit=MAX_CLAIMED
                )
            return self._claimed.popleft() if self._claimed else None

    def _release_claimed(self) -> None:
        """Give back the rows that no thread has begun with."""
        with self._claiming, suppress(SealpipeError):
            while self._claimed:
                self._engine.store.release(self._claimed.popleft())

    def _pop_task(self) -> Task | None:
        with self._lock:
            return self._tasks.pop(0) if self._tasks else None

    def _wait_for_due(self) -> bool:
        """Wait a little for the next row, if there is time. Returns whether to go on."""
        if self._ends_at is None or self._is_round:
            return False
        due_at = self._engine.store.find_next_due(self._engine.batch)
        if due_at is None:
            return False
        delay = (due_at - self._engine.store.now()) / SECOND
        self._stop.wait(max(0.01, min(delay, _IDLE_WAIT, self._ends_at - time.monotonic())))
        return True

    def _report(self, advanced: Advanced) -> None:
        with self._lock:
            self._result.changes += advanced.changes
        for change in advanced.changes if self._on_change is not None else ():
            self._on_change(change)  # type: ignore[misc]


def choose_threads(calls_per_minute: float | None) -> int:
    """Return how many threads a rate keeps busy, if a call takes half a second."""
    return (
        MAX_THREADS // 2
        if calls_per_minute is None
        else max(1, min(MAX_THREADS, round(calls_per_minute / 120) + 1))
    )


def learn_limit(engine: Engine) -> None:
    """Ask the service for the plan's rate once, if it tells."""
    with suppress(SealpipeError):
        capabilities = find_capabilities(engine.session)
        limit = None if capabilities is None else capabilities.key.get("rate_limit_rpm")
        if isinstance(limit, int) and not isinstance(limit, bool) and limit:
            # Below zero there is no limit.
            engine.store.rate.set_limit(MAX_LIMIT if limit < 0 else min(limit, MAX_LIMIT))


def free_dead_rows(engine: Engine) -> None:
    """Give back the rows that a killed run held.

    Only for the one runner of an embedded database. Those that it holds itself for what others ask
    for by hand it keeps.
    """
    rows: list[Row] = [
        row
        for row in engine.store.list_rows(engine.batch)
        if row.holder and not row.holder.startswith(HANDS)
    ]
    for row in rows:
        engine.store.release(row)
