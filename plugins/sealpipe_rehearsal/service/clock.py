"""The service's clock, which the control API can move forward, and RFC 3339 times."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_RFC3339 = re.compile(
    # No hour 24: Python 3.14 and later would read it as the next day.
    r"\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)

_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def system_clock() -> datetime:
    """Return the machine's time, in UTC."""
    return datetime.now(UTC)


class Clock:
    """The time of `source` plus an offset. The offset is not stored: it is lost at a restart.

    `on_advance` is called after each advance, in the same thread.
    """

    def __init__(self, source: Callable[[], datetime] = system_clock) -> None:
        self._source = source
        self._offset = timedelta()
        self.on_advance: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the service's time, in UTC."""
        return (self._source() + self._offset).astimezone(UTC)

    def timestamp(self) -> float:
        """Return the service's time, in seconds since 1970."""
        return self.now().timestamp()

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


def parse_rfc3339(text: str) -> datetime | None:
    """Parse an RFC 3339 time to a datetime in UTC; None if it is invalid."""
    if not _RFC3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def from_timestamp(seconds: float) -> datetime:
    """Return a Unix time as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def rfc3339_at(seconds: float | None) -> str | None:
    """Format a Unix time as RFC 3339; None stays None."""
    return None if seconds is None else format_rfc3339(from_timestamp(seconds))


def format_rfc3339(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC with `Z`, with a fraction of a second only if it has one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
