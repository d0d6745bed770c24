"""Durations and points in time as people write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import UsageError
from sealpipe.parsing import format_time, parse_duration, parse_time

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
CENTURY = 100 * 366 * 86_400


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1s", timedelta(seconds=1)),
        ("90m", timedelta(minutes=90)),
        ("72h", timedelta(hours=72)),
        ("030d", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


NO_DURATIONS = (
    "", "72", "h", "72 h", " 72h", "72h ", "72h\n", "-1h", "+1h", "1.5h", "1_0h", "1e3s", "72H",
    "72hours", "1h30m", "P3D", "inf", "0h", "000s", "37000d", "999999999w", "1000000000s",
    "\u0663h", "\u00b2h",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_duration_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration(text)
    assert caught.value.remedy


@given(st.integers(1, 999_999_999), st.sampled_from("smhdw"))
def test_every_number_and_unit_is_exact_or_refused_as_too_long(number: int, unit: str) -> None:
    seconds = number * SECONDS[unit]
    if seconds <= CENTURY:
        assert parse_duration(f"{number}{unit}").total_seconds() == seconds
    else:
        with pytest.raises(UsageError, match="hundred years"):
            parse_duration(f"{number}{unit}")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-31T12:00:00Z", datetime(2026, 12, 31, 12, tzinfo=UTC)),
        ("2026-12-31t12:00:00z", datetime(2026, 12, 31, 12, tzinfo=UTC)),
        ("2026-12-31 12:00:00+01:00", datetime(2026, 12, 31, 11, tzinfo=UTC)),
        ("2026-12-31T12:00:00-05:30", datetime(2026, 12, 31, 17, 30, tzinfo=UTC)),
        ("2028-02-29T23:59:59Z", datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC)),
        ("2026-12-31T12:00:00.5Z", datetime(2026, 12, 31, 12, microsecond=500_000, tzinfo=UTC)),
        (
            "2026-12-31T12:00:00.123456789Z",
            datetime(2026, 12, 31, 12, microsecond=123_456, tzinfo=UTC),
        ),
    ],
)
def test_a_time_is_rfc_3339_with_its_zone(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment
    assert parse_time(text).utcoffset() is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "tomorrow", "2026-12-31", "12:00:00Z", "2026-12-31T12:00Z", "2026-12-31T12:00:00",
        "20261231T120000Z", "2026-W53-4T12:00:00Z", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z",
        "2026-12-31T24:00:00Z", "2026-12-31T12:00:60Z", "2026-12-31T12:00:00+25:00",
        "2026-12-31T12:00:00+0100", "2026-12-31T12:00:00 Z", "\uff12026-12-31T12:00:00Z",
        "2026-12-31T12:00:00Z\n", "0000-01-01T00:00:00Z", "2026-12-31T12:00:00.Z",
        "2026-12-31T12:00:00+23:60",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_time(text)
    assert "2026-12-31T12:00:00Z" in caught.value.remedy


def test_a_long_text_is_not_repeated_whole() -> None:
    for parse in (parse_duration, parse_time):
        with pytest.raises(UsageError) as caught:
            parse("\x1b[31m" + "x" * 1000)
        assert len(caught.value.message) < 120
        assert "\x1b" not in caught.value.message


zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1000, 1, 3), datetime(9999, 12, 29), timezones=zones)


@given(moments)
def test_what_is_written_reads_back_to_the_second(moment: datetime) -> None:
    written = format_time(moment)
    assert written.endswith("Z")
    assert len(written) == 20
    assert parse_time(written) == moment.replace(microsecond=0)


@given(moments)
def test_every_zone_is_understood(moment: datetime) -> None:
    assert parse_time(moment.isoformat()) == moment


@given(st.text())
def test_junk_never_crashes(text: str) -> None:
    for parse, kind in ((parse_duration, timedelta), (parse_time, datetime)):
        with contextlib.suppress(UsageError):
            assert isinstance(parse(text), kind)


def test_a_time_without_a_zone_is_not_written() -> None:
    with pytest.raises(UsageError, match="time zone"):
        format_time(datetime(2026, 1, 1))


@pytest.mark.parametrize("year", [1, 33, 999])
def test_an_early_year_is_written_in_four_digits(year: int) -> None:
    assert format_time(datetime(year, 1, 2, tzinfo=UTC)) == f"{year:04}-01-02T00:00:00Z"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_has_no_place_in_utc_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text)
