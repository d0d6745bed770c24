"""Takes rows that are due, with some threads: the loop of runs and workers on either database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.records import SECOND, Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import Advanced, Engine
from sealpipe.batch.steps.states import Step
from sealpipe.cancellation import Cancellation, make_current

MAX_THREADS: Final = 8
TICK_SECONDS: float = 15.0
"""Between two calls of `on_tick`."""
OUTAGE_SECONDS: float = 30.0
"""Seconds that a database is waited for that does not answer: longer than a restart takes."""
GRACE_SECONDS: float = 90.0
"""Seconds in which a step may end that has begun when the loop is stopped, or its time is up."""
_CHANGE_SECONDS: Final = 5.0
"""Seconds that a change may take that is under way even then."""
IDLE_WAIT: Final = 0.5
"""Seconds between two looks for rows while others have those that are due."""
_JOIN_WAIT: Final = 0.2


@dataclass(frozen=True, slots=True)
class Task:
    """A row to take: because it failed, is named, was approved, or is looked at now."""

    row_id: str
    steps: tuple[Step, ...] = ()
    """The steps that are approved; empty for all."""
    is_look: bool = False
    """Whether it is only looked at, whatever its schedule says."""
    is_repeat: bool = False
    """Whether its step is due now, for it failed before."""

    def carry_out(self, engine: Engine, row: Row) -> Advanced:
        """Do this with the row, which the caller has taken."""
        if self.is_look:
            return engine.look(row)
        if not self.is_repeat and (row.due_at is None or row.due_at > engine.store.now()):
            return Advanced(row)
        return engine.advance(row, force=self.is_repeat, steps=self.steps)


class Outage:
    """How long the database has not answered. Threads share it."""

    def __init__(self) -> None:
        self._ends_at: float | None = None

    @contextmanager
    def tolerating(self) -> Iterator[None]:
        """Let DatabaseUnavailableError pass, unless all has failed for `OUTAGE_SECONDS`."""
        try:
            yield
        except DatabaseUnavailableError:
            self._ends_at = self._ends_at or time.monotonic() + OUTAGE_SECONDS
            if time.monotonic() > self._ends_at:
                raise
        else:
            self._ends_at = None

    @property
    def is_over(self) -> bool:
        """Whether the last call was answered."""
        return self._ends_at is None


class Loop:
    """Advances rows until there is nothing to do, the time is up, or it is stopped."""

    def __init__(
        self,
        store: BatchStore,
        engines: Mapping[str, Engine],
        report: Callable[[Engine, Advanced], object],
        *,
        threads: int | None = None,
        ends_at: float | None = None,
        tasks: Sequence[tuple[Engine, Task]] = (),
        takes_due: bool = True,
        waits: bool = False,
        on_tick: Callable[[], object] = lambda: None,
        outage: Outage | None = None,
    ) -> None:
        """`engines` are those of the batches, by id.

        `tasks` come first; then what is due, with `takes_due`. `waits`: until `ends_at`, a time of
        `time.monotonic`, also for what is due later. `on_tick` is called every now and then, by one
        thread at a time.
        """
        self._store = store
        self._engines = engines
        self._report = report
        self._threads = threads
        self._ends_at = ends_at
        self._tasks = list(tasks)
        self._takes_due = takes_due
        self._waits = waits
        self._on_tick = on_tick
        self._ticking = threading.Lock()
        self._ticks_at = time.monotonic() + TICK_SECONDS
        self._outage = Outage() if outage is None else outage
        self._lock = threading.Lock()
        self._is_stopped = False
        self._crash: BaseException | None = None

    def run(self) -> None:
        """Take rows. Raises StateError if the database cannot be used."""
        number = self._threads or choose_threads(self._store.rate.read().calls_per_minute)
        if number == 1 and self._ends_at is None:
            self._work()
        else:
            self._run_threads([Cancellation() for _ in range(number)])
        if self._crash is not None:
            raise self._crash

    def stop(self) -> None:
        """Take no further row; what has begun ends. May be called in a signal's handler."""
        self._is_stopped = True

    def _run_threads(self, cancellations: Sequence[Cancellation]) -> None:
        """Work in threads; one that hangs is left behind, and begins nothing any more."""
        threads = [
            threading.Thread(target=self._work, args=[each], daemon=True) for each in cancellations
        ]
        leaves_at = None
        try:
            for thread in threads:
                thread.start()
            while alive := [each for each in threads if each.is_alive()]:
                alive[0].join(_JOIN_WAIT)
                if leaves_at is None and (self._is_stopped or self._is_late()):
                    leaves_at = time.monotonic() + GRACE_SECONDS
                if leaves_at is not None and time.monotonic() > leaves_at:
                    _leave(alive, cancellations)
                    return
        finally:
            # after a signal, each thread ends its step, which can be killed as well
            self.stop()

    def _work(self, cancellation: Cancellation | None = None) -> None:
        """Take rows until there is nothing to do."""
        if cancellation is not None:
            make_current(cancellation)
        try:
            while not self._is_stopped and not self._is_late():
                has_more = True
                with self._outage.tolerating():
                    self._tick()
                    has_more = self._take()
                if not has_more:
                    return
                if not self._outage.is_over:
                    time.sleep(IDLE_WAIT)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            with self._lock:
                self._crash = self._crash or error
            self.stop()

    def _is_late(self) -> bool:
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _tick(self) -> None:
        if time.monotonic() < self._ticks_at or not self._ticking.acquire(blocking=False):
            return
        try:
            self._on_tick()
            self._ticks_at = time.monotonic() + TICK_SECONDS
        finally:
            self._ticking.release()

    def _take(self) -> bool:
        """Take one row and advance it. Returns whether there may be another."""
        with self._lock:
            engine, task = self._tasks.pop(0) if self._tasks else (None, None)
        if engine is not None and task is not None:
            row = self._store.take(engine.batch, task.row_id)
        elif self._takes_due:
            row = self._store.take_due(each.batch for each in list(self._engines.values()))
        else:
            return False
        if row is None:
            return task is not None or self._wait_for_due()
        try:
            engine = engine or self._engines.get(row.batch)
            if engine is not None:
                work = engine.advance(row) if task is None else task.carry_out(engine, row)
                self._report(engine, work)
        finally:
            self._store.give_back(row)
        return True

    def _wait_for_due(self) -> bool:
        """Wait a little for the next row, if there is time. Returns whether to go on."""
        if not self._waits or self._ends_at is None:
            return False
        due_at = find_next_due(self._store, self._engines)
        if due_at is None:
            return False
        delay = (due_at - self._store.now()) / SECOND
        wait = min(delay, IDLE_WAIT) if delay > 0 else IDLE_WAIT
        time.sleep(max(0.01, min(wait, self._ends_at - time.monotonic())))
        return True


def _leave(threads: Sequence[threading.Thread], cancellations: Sequence[Cancellation]) -> None:
    is_changing = [each.cancel() for each in cancellations]
    if any(is_changing):
        ends_at = time.monotonic() + _CHANGE_SECONDS
        for thread in threads:
            thread.join(max(0.0, ends_at - time.monotonic()))
    for each in cancellations:
        each.interrupt()


def find_next_due(store: BatchStore, engines: Mapping[str, Engine]) -> int | None:
    """Return when the first row of these batches is due, if any is, by the database's clock."""
    moments = [store.find_next_due(each.batch) for each in list(engines.values())]
    return min((each for each in moments if each is not None), default=None)


def choose_threads(calls_per_minute: float | None) -> int:
    """Return how many threads a rate keeps busy, if a call takes half a second."""
    return (
        MAX_THREADS // 2
        if calls_per_minute is None
        else max(1, min(MAX_THREADS, round(calls_per_minute / 120) + 1))
    )
