"""The service's clock, and RFC 3339 times."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

_RFC3339 = re.compile(
    # No hour 24: Python 3.14 and later would read it as the next day.
    r"\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})",
    re.ASCII,
)


def system_clock() -> datetime:
    """Return the machine's time, in UTC."""
    return datetime.now(UTC)


class Clock:
    """The time of `source`."""

    def __init__(self, source: Callable[[], datetime] = system_clock) -> None:
        self._source = source

    def now(self) -> datetime:
        """Return the service's time, in UTC."""
        return self._source().astimezone(UTC)

    def timestamp(self) -> float:
        """Return the service's time, in seconds since 1970."""
        return self.now().timestamp()


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
