"""The limit of rows an hour that a machine's config may set: what is over it is left for later.

A row counts for an hour after a share or request was created for it, in any batch of this
credential in the database, by whatever machine: the histories say so, by the database's clock.
Workers that create at the same moment do not know of each other's rows yet.
"""

from __future__ import annotations

import threading

from sealpipe.batch.database.history import LATENESS
from sealpipe.batch.database.records import Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.steps.row_work import to_datetime
from sealpipe.batch.steps.states import HOUR, Event
from sealpipe.hourly_limit import HourlyLimit
from sealpipe.parsing import format_time


class RowLimit:
    """At most so many rows an hour, over all batches; None for any number. Threads share it."""

    def __init__(self, store: BatchStore, most: int | None) -> None:
        self._store = store
        self._limit = None if most is None else HourlyLimit(most, HOUR)
        self._lock = threading.Lock()
        self._created: dict[str, int] = {}
        self._begun: set[str] = set()
        self._read_until = 0
        self._postponed: dict[str, int] = {}
        self._untold: set[str] = set()

    def postpone(self, row: Row) -> int | None:
        """Let something be created for a row, and return None.

        Or return the time until which it has to wait.
        """
        if self._limit is None:
            return None
        with self._lock:
            now = self._store.now()
            if row.id not in self._created and not self._count_left(self._limit, now):
                self._untold.add(row.id)
                return self._choose_time(self._limit, row.id, now)
            if row.id not in self._created:
                self._created[row.id] = now
                self._begun.add(row.id)
            self._postponed.pop(row.id, None)
            return None

    def give_back(self, row: Row) -> None:
        """Count a row no longer: what was begun for it failed."""
        with self._lock:
            if row.id in self._begun:
                self._begun.discard(row.id)
                self._created.pop(row.id, None)

    def count_left(self) -> int | None:
        """Return for how many rows something may be created now; None for any number."""
        with self._lock:
            return None if self._limit is None else self._count_left(self._limit, self._store.now())

    def take_warnings(self) -> tuple[str, ...]:
        """Return what to tell of the rows that were left for later since the last time.

        One warning, or none.
        """
        with self._lock:
            moments = [self._postponed[row] for row in self._untold if row in self._postponed]
            self._untold.clear()
        if self._limit is None or not moments:
            return ()
        rows = "1 row is" if len(moments) == 1 else f"{len(moments)} rows are"
        at = format_time(to_datetime(min(moments)))
        return (
            f"{rows} left for later, from {at}: this machine allows {self._limit.most} an hour",
        )

    def _count_left(self, limit: HourlyLimit, now: int) -> int:
        self._created = limit.select_counted(self._created, now)
        self._begun &= self._created.keys()
        if limit.count_left(self._created.values()):  # others only add to it
            self._read(now)
        return limit.count_left(self._created.values())

    def _read(self, now: int) -> None:
        since = max(now - HOUR, self._read_until - LATENESS)
        for batch in self._store.list_batches():
            for row, _, event in self._store.history.read_since(batch, since):
                if event.content.get("what") == Event.CREATED:
                    self._created[row] = max(event.at, self._created.get(row, 0))
                    self._begun.discard(row)
        self._read_until = now

    def _choose_time(self, limit: HourlyLimit, row: str, now: int) -> int:
        """Return when a row may be tried again.

        Each waits for a place of its own, so that few come in vain.
        """
        self._postponed = {each: at for each, at in self._postponed.items() if at > now}
        if row not in self._postponed:
            self._postponed[row] = limit.find_time(self._created.values(), len(self._postponed))
        return self._postponed[row]
