"""Works on every batch of an embedded database, one round after another, until it is stopped.

A round takes what is due in each batch. Between two rounds nothing is locked, so that `run` can
bring another file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Final

from sealpipe.batch.database.records import SECOND, Batch
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.actions import serving_hands
from sealpipe.batch.engine.advance import Change, Engine
from sealpipe.batch.engine.high_water import check_high_water, note_high_water
from sealpipe.batch.engine.notify import PeriodicNews, check_allowed
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.batch.engine.run import Runner, learn_limit
from sealpipe.batch.engine.sync import restore_definition
from sealpipe.errors import StateError
from sealpipe.session import Session

LONGEST_PAUSE: Final = 5.0
"""Seconds between two looks into the database while nothing is due: somebody may have brought
another file.
"""


class LocalWorker:
    """Takes rows of every batch that its credential opens, until it is stopped.

    Threads share the rows of a batch.
    """

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
        self._stop = threading.Event()
        self._runner: Runner | None = None
        self._knows_limit = False
        self._news = PeriodicNews(store, self._make_engine, on_change)

    def run(self, seconds: float | None = None) -> None:
        """Work until `stop`, or for so many seconds.

        Raises StateError if another process runs batches now.
        """
        ends_at = None if seconds is None else time.monotonic() + seconds
        must_lock = True
        while not self._stop.is_set():
            left = None if ends_at is None else ends_at - time.monotonic()
            if left is not None and left <= 0:
                break
            pause = self._run_round(left, must_lock=must_lock)
            must_lock = False
            self._stop.wait(pause if left is None else min(pause, left))
        self._tell(self._store.list_batches(), is_last=True)

    @property
    def calls(self) -> int:
        """How many calls it has sent to the service."""
        return self._transport.calls

    def stop(self) -> None:
        """Take no further row; what has begun ends. May be called in a signal's handler."""
        self._stop.set()
        if self._runner is not None:
            self._runner.stop()

    def _run_round(self, seconds: float | None, *, must_lock: bool) -> float:
        """Do what is due in each batch. Returns the seconds until the next round."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._store.lock_runner())
            except StateError:
                if must_lock:
                    raise
                return LONGEST_PAUSE  # a run has it, and does what is due
            stack.enter_context(serving_hands(self._store, self._make_engine, self._on_change))
            batches = self._store.list_batches()
            for batch in batches:
                due_at = self._store.find_next_due(batch)
                if not self._stop.is_set() and due_at is not None and due_at <= self._store.now():
                    self._run_batch(batch, seconds)
        self._tell(batches)
        moments = [
            due_at for batch in batches if (due_at := self._store.find_next_due(batch)) is not None
        ]
        if not moments:
            return LONGEST_PAUSE
        return max(0.05, min(LONGEST_PAUSE, (min(moments) - self._store.now()) / SECOND))

    def _run_batch(self, batch: Batch, seconds: float | None) -> None:
        check_allowed(self._session, batch.name)
        check_high_water(self._store, batch)
        engine = self._make_engine(batch)
        if not self._knows_limit:
            learn_limit(engine)
            self._knows_limit = True
        on_change = partial(self._on_change, batch)
        self._runner = Runner(
            engine, seconds=seconds, threads=self._threads, on_change=on_change, is_round=True
        )
        for warning in self._runner.run().warnings:
            on_change(Change("[limit]", "postponed", warning))
        self._runner = None
        note_high_water(self._store, batch)

    def _make_engine(self, batch: Batch) -> Engine:
        return Engine(self._session, self._store, batch, restore_definition(batch))

    def _tell(self, batches: Iterable[Batch], *, is_last: bool = False) -> None:
        """Tell the teams what has changed, every now and then and at the end."""
        for batch in batches:
            self._news.tell(batch, is_last=is_last)
