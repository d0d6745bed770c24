"""Works on every batch of a database that its credential opens, until it is stopped.

On PostgreSQL, any number of workers on any machines. On an embedded database, one: it takes what is
due, and between two rounds nothing is locked, so that `run` can bring another file.
"""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.records import SECOND, Batch
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine import loop
from sealpipe.batch.engine.actions import serving_hands
from sealpipe.batch.engine.advance import Advanced, Change, Engine
from sealpipe.batch.engine.breaker import POSTPONEMENT, Breaker
from sealpipe.batch.engine.high_water import check_high_water, note_high_water
from sealpipe.batch.engine.loop import Loop, Outage, find_next_due
from sealpipe.batch.engine.notify import PeriodicNews, check_allowed
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.batch.engine.run import learn_limit
from sealpipe.batch.engine.sync import restore_definition
from sealpipe.errors import StateError
from sealpipe.session import Session

LONGEST_PAUSE: Final = 5.0
"""Seconds between two looks into the database while nothing is due: somebody may have brought
another file.
"""
_SHORTEST_PAUSE: Final = 0.05
_THOROUGH_SECONDS: Final = 60.0
"""Between two searches for due rows that have no job."""


class Worker:
    """Takes rows of every batch that its credential opens."""

    def __init__(
        self,
        session: Session,
        store: BatchStore,
        *,
        threads: int | None = None,
        on_change: Callable[[Batch, Change], object] = lambda _, __: None,
    ) -> None:
        self._store = store
        self._threads = threads
        self._on_change = on_change
        self._transport = RatedTransport(session.transport, store.rate)
        self._session = session.with_transport(self._transport)
        self._engines: dict[str, Engine] = {}
        self._breakers_made_at = 0
        self._refreshed_at = self._reconciled_at = -math.inf
        self._knows_limit = False
        self._is_stopped = False
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop: Loop | None = None
        self._outage = Outage()
        self._news = PeriodicNews(store, self._make_engine, on_change)

    def run(self, seconds: float | None = None) -> None:
        """Work until `stop`, or for so many seconds.

        Raises StateError if another process runs batches of an embedded database now.
        """
        ends_at = None if seconds is None else time.monotonic() + seconds
        must_lock = True
        while not self._is_stopped and (ends_at is None or time.monotonic() < ends_at):
            pause = loop.IDLE_WAIT
            with self._outage.tolerating():
                pause = self._run_round(ends_at, must_lock=must_lock)
            must_lock = False
            left = math.inf if ends_at is None else max(0.0, ends_at - time.monotonic())
            with suppress(queue.Empty):
                self._wake.get(timeout=min(pause, left))
        self._tell(is_last=True)

    @property
    def calls(self) -> int:
        """How many calls it has sent to the service."""
        return self._transport.calls

    def stop(self) -> None:
        """Take no further row; what has begun ends. May be called in a signal's handler."""
        self._is_stopped = True
        self._wake.put(None)
        if self._loop is not None:
            self._loop.stop()

    def _run_round(self, ends_at: float | None, *, must_lock: bool) -> float:
        """Do what is due. Returns the seconds until the next round."""
        store = self._store
        with ExitStack() as stack:
            try:
                stack.enter_context(store.lock_runner())
            except StateError:
                if must_lock:
                    raise
                return LONGEST_PAUSE  # a run has it, and does what is due
            stack.enter_context(serving_hands(store, self._make_engine, self._on_change))
            if store.has_one_runner or self._is_time_to_refresh():
                self._refresh()
            due_at = find_next_due(store, self._engines)
            if due_at is not None and due_at <= store.now() and not self._is_stopped:
                if not self._knows_limit:
                    learn_limit(next(iter(self._engines.values())))
                    self._knows_limit = True
                self._loop = Loop(
                    store,
                    self._engines,
                    self._report,
                    threads=self._threads,
                    ends_at=math.inf if ends_at is None else ends_at,
                    on_tick=self._tick,
                    outage=self._outage,
                )
                self._loop.run()
        self._tell()
        due_at = find_next_due(store, self._engines)
        if due_at is None:
            return LONGEST_PAUSE
        pause = (due_at - store.now()) / SECOND
        # What is due now is somebody else's.
        return loop.IDLE_WAIT if pause <= 0 else max(_SHORTEST_PAUSE, min(LONGEST_PAUSE, pause))

    def _tick(self) -> None:
        self._refresh()
        self._tell()

    def _is_time_to_refresh(self) -> bool:
        return time.monotonic() - self._refreshed_at >= loop.TICK_SECONDS

    def _refresh(self) -> None:
        """Open batches that are new or have changed, and forget those that are gone.

        Raises StateError if the database was restored.
        """
        now, store = self._store.now(), self._store
        is_late = now - self._breakers_made_at > POSTPONEMENT
        batches = store.list_batches()
        for batch_id in self._engines.keys() - {batch.id for batch in batches}:
            del self._engines[batch_id]
        for batch in batches:
            check_high_water(store, batch)
            engine = self._engines.get(batch.id)
            if engine is None or _identify(engine.batch) != _identify(batch):
                check_allowed(self._session, batch.name)
                engine = self._engines[batch.id] = self._make_engine(batch)
            elif is_late:
                engine.breaker = Breaker()
            engine.count_waiting()
        if is_late:
            self._breakers_made_at = now
        is_thorough = time.monotonic() - self._reconciled_at >= _THOROUGH_SECONDS
        store.reconcile(batches, is_thorough=is_thorough)
        if is_thorough:
            self._reconciled_at = time.monotonic()
        self._refreshed_at = time.monotonic()

    def _make_engine(self, batch: Batch) -> Engine:
        return Engine(self._session, self._store, batch, restore_definition(batch))

    def _report(self, engine: Engine, advanced: Advanced) -> None:
        for change in advanced.changes:
            self._on_change(engine.batch, change)

    def _tell(self, *, is_last: bool = False) -> None:
        """Tell the teams what has changed, if it is time; note how far all is."""
        with suppress(DatabaseUnavailableError):  # the next time tells what this one missed
            for engine in list(self._engines.values()):
                self._news.tell(engine.batch, is_last=is_last)
                for warning in engine.row_limit.take_warnings():
                    self._on_change(engine.batch, Change("[limit]", "postponed", warning))
                note_high_water(self._store, engine.batch)


def _identify(batch: Batch) -> tuple[int, int]:
    """Return what identifies a batch, also against a purged one of the same name."""
    return batch.created_at, batch.version
