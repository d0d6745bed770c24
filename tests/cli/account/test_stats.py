"""Stats: figures from the rehearsal through a client and the command line; odd answers; the
chart on a terminal.
"""

from __future__ import annotations

import itertools
import json
import re
from datetime import date, timedelta
from typing import Any

import pytest

from cli.account.hasty import hasty
from sealpipe import Client, Field, ProtocolError
from sealpipe.api import account
from sealpipe.api.account import DailyViews, Stats
from sealpipe.cli.account import draw_chart
from sealpipe_rehearsal.running_service import RunningService
from support.faults import says
from support.faulty import Faulty
from support.terminal import Terminal


def a_little_life(client: Client, service: RunningService) -> None:
    """Four shares: two are opened, one of which is over by that, and one is expired."""
    shares = [client.share([Field("n", "v")], views=views, custody="off") for views in (1, 5, 5, 5)]
    for share in shares[:2]:
        service.recipient().open_link(share.link.reveal())
    client.expire_share(shares[2].short_code)


def test_the_figures_are_those_of_the_account(client: Client, service: RunningService) -> None:
    a_little_life(client, service)
    told = client.get_stats()
    assert (told.active, told.expired, told.total_viewed, told.extra) == (2, 2, 2, {})
    assert len(told.daily_views) == 14
    days = [day for day, _ in told.daily_views]
    assert all(
        later - day == timedelta(days=1) for day, later in itertools.pairwise(days) if day and later
    )
    assert [views for _, views in told.daily_views] == 13 * [0] + [2]


ODD: dict[str, tuple[Any, Stats]] = {
    "nothing": ({}, Stats(None, None, None)),
    "nulls": ({"shares": None, "daily_views": None}, Stats(None, None, None)),
    "a day without a count": (
        {"daily_views": [{"date": "2026-01-02"}]},
        Stats(None, None, None, (DailyViews(date(2026, 1, 2), None),)),
    ),
    "more than we know": (
        {"shares": {"active": 1, "archived": 2}, "since": "ever"},
        Stats(1, None, None, (), {"since": "ever", "shares": {"archived": 2}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_what_is_missing_is_none_and_what_is_unknown_is_kept(
    client: Client, faulty: Faulty, name: str
) -> None:
    body, expected = ODD[name]
    faulty.plan(then=says(200, json.dumps(body)))
    assert client.get_stats() == expected


@pytest.mark.parametrize(
    "body",
    ['{"shares": 5}', '{"shares": []}', '{"shares": {"active": "5"}}',
        '{"shares": {"active": 5.0}}',
     '{"shares": {"active": true}}', '{"daily_views": {}}', '{"daily_views": [5]}',
     '{"daily_views": [{"count": "1"}]}', '{"daily_views": [{"date": 5}]}',
     '{"daily_views": [{"date": "2026-02-30"}]}',
     '{"daily_views": [{"date": "2026-W01-1"}]}',
     '{"daily_views": [{"date": "2026-01-02T00:00:00Z"}]}', "[]", "x"],
)  # fmt: skip
def test_another_type_breaks_the_protocol(client: Client, faulty: Faulty, body: str) -> None:
    faulty.plan(then=says(200, body))
    with pytest.raises(ProtocolError):
        hasty(client, account.get_stats())


@pytest.mark.parametrize(
    ("environ", "block"), [({"LANG": "C.UTF-8"}, "█"), ({"PYTHONIOENCODING": "ascii"}, "#")]
)
def test_on_a_terminal_there_are_bars(
    client: Client, user: Terminal, service: RunningService, environ: dict[str, str], block: str
) -> None:
    user.environ["SEALPIPE_API_KEY"] = service.create_key().reveal()
    a_little_life(client, service)
    seen = user.on_a_terminal("stats", COLUMNS="60", **environ)
    lines = seen.splitlines()
    assert len(lines) == 16
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d  2 {block}+", lines[13])
    assert len(lines[13]) <= 60
    assert lines[15] == "2 active, 2 expired, 2 views in total"


def test_the_longest_bar_fills_the_line_and_no_viewed_day_is_without_one() -> None:
    dates = (
        date(2026, 1, 1),
        date(2026, 1, 2),
        None,
        date(2026, 1, 4),
        date(2026, 1, 5),
        date(2026, 1, 6),
    )
    days = tuple(map(DailyViews, dates, (1, 0, None, 10_000, 5_000, -3)))
    lines = draw_chart(Stats(1, None, 3, days), 50, "#").splitlines()
    bars = [line.count("#") for line in lines[:6]]
    assert bars == [1, 0, 0, bars[3], bars[3] // 2, 0]
    assert 45 <= len(lines[3]) <= 50
    assert max(map(len, lines)) == len(lines[3])
    assert lines[6:] == ["", "1 active, - expired, 3 views in total"]
    assert draw_chart(Stats(0, 0, 0), 0, "#") == "0 active, 0 expired, 0 views in total\n"
    assert max(map(len, draw_chart(Stats(0, 0, 0, days), 5, "#").splitlines()[:6])) < 30
