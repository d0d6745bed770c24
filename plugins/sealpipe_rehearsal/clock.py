"""The clock of a rehearsal, which the control API moves forward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sealpipe_service.clock import Clock, system_clock

_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


class MovableClock(Clock):
    """The time of `source` plus an offset. The offset is not stored: it is lost at a restart.

    `on_advance` is called after each advance, in the same thread.
    """

    def __init__(self, source: Callable[[], datetime] = system_clock) -> None:
        super().__init__(source)
        self._offset = timedelta()
        self.on_advance: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the service's time, in UTC."""
        return (self._source() + self._offset).astimezone(UTC)

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises OverflowError beyond the year 9000."""
        with self._lock:
            offset = self._offset + timedelta(seconds=seconds)
            if self._source() + offset > _LATEST:
                raise OverflowError(f"the clock cannot be later than {_LATEST.year}")
            self._offset = offset
        self.on_advance()

    def reset(self) -> None:
        """Set the offset to zero."""
        with self._lock:
            self._offset = timedelta()
