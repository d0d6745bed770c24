"""The clock of a rehearsal, which the control API moves forward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from sealpipe_service.clock import Clock, from_timestamp

from .database import RehearsalDatabase

_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


class MovableClock(Clock):
    """The time by which the database decides: its machine's, plus an offset that it keeps.

    `on_advance` is called after each advance, in the same thread.
    """

    def __init__(self, database: RehearsalDatabase) -> None:
        super().__init__(database.source)
        self._database = database
        self._offset = database.offset()  # nobody else moves it: see `RehearsalDatabase`
        self.on_advance: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the service's time, in UTC."""
        return from_timestamp(self._source().timestamp() + self._offset)

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises OverflowError beyond the year 9000."""
        with self._lock:
            offset = self._offset + seconds
            if self._source().timestamp() + offset > _LATEST.timestamp():
                raise OverflowError(f"the clock cannot be later than {_LATEST.year}")
            self._set(offset)
        self.on_advance()

    def reset(self) -> None:
        """Set the offset to zero."""
        with self._lock:
            self._set(0.0)

    def _set(self, offset: float) -> None:
        self._database.set_offset(offset)
        self._offset = offset
