"""Durations and points in time as people write them: `72h`, `2026-12-31T12:00:00Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from sealpipe.errors import UsageError

_DURATION = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?(?P<zone>[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_duration(text: str) -> timedelta:
    """`N(s|m|h|d|w)` as a timedelta; UsageError where it is not one, or is nothing at all."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{_shorten(text)} is not a duration",
            remedy="write a whole number and one of s m h d w, such as 72h",
        )
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds == 0:
        raise UsageError("a duration cannot be zero", remedy="write at least 1s")
    if seconds > 100 * 366 * 86400:
        raise UsageError(f"{_shorten(text)} is more than a hundred years", remedy="use --no-expiry for no end")
    return timedelta(seconds=seconds)


def as_duration(value: timedelta | str) -> timedelta:
    """A duration of a call from Python: a timedelta, or text as `parse_duration` takes it."""
    return parse_duration(value) if isinstance(value, str) else value


def as_seconds(value: timedelta | str | float) -> float:
    """The same in seconds; a number stands for so many."""
    return as_duration(value).total_seconds() if isinstance(value, timedelta | str) else value


def parse_time(text: str) -> datetime:
    """An RFC 3339 time with its zone, as an aware datetime; UsageError otherwise."""
    match = _RFC3339.fullmatch(text)
    remedy = "write it as 2026-12-31T12:00:00Z or 2026-12-31T12:00:00+01:00"
    if match is None:
        raise UsageError(f"{_shorten(text)} is not an RFC 3339 time", remedy=remedy)
    if match["zone"] is None:
        raise UsageError(f"{_shorten(text)} has no time zone", remedy=remedy)
    try:
        moment = datetime.fromisoformat(text.upper())
        moment.astimezone(UTC)  # at the calendar's two ends, not every zone's time has one in UTC
    except (ValueError, OverflowError):
        raise UsageError(f"{_shorten(text)} is not an existing date or time", remedy=remedy) from None
    return moment


def format_time(moment: datetime) -> str:
    """RFC 3339 in UTC, whole seconds: `2026-12-31T12:00:00Z`. UsageError for a time without a zone."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise UsageError(
            "a time without a time zone could mean any of them",
            remedy="give the datetime a tzinfo, such as datetime.UTC",
        )
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _shorten(text: str) -> str:
    """What was typed, short and without control characters."""
    return repr(text if len(text) <= 40 else text[:40] + "...")
