"""`sealpipe stats`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import Command, options

if TYPE_CHECKING:
    from sealpipe.api.account import Stats


@click.command(cls=Command)
@options("", common=context.COMMON)
def stats(**values: Any) -> None:
    """Show how many shares exist, and how often they were viewed on each of the last 14 days.

    Draws bars on a terminal; elsewhere prints a line per day: date, tab, views.
    """
    with context.open_client(values) as client:
        told = client.get_stats()
    if values["output"] == "json":
        render.print_json(_members(told))
    elif sys.stdout is not None and sys.stdout.isatty():
        import shutil

        block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
        render.print_result(chart(told, shutil.get_terminal_size().columns, block))
    else:
        render.print_result("".join(f"{day}\t{views}\n" for day, views in _rows(told)))
        render.print_note(_figures(told))


def chart(told: Stats, columns: int, block: str) -> str:
    """Draw a bar for each day, scaled to `columns`, and the figures below. Ends in a newline."""
    rows = _rows(told)
    digits = max((len(views) for _, views in rows), default=0)
    most = max((max(0, views or 0) for _, views in told.daily_views), default=0)
    room = max(1, min(columns, 100) - len("2026-01-01  ") - digits - 2)
    lines = []
    for (day, shown), (_, views) in zip(rows, told.daily_views, strict=True):
        # A day with any view has a bar, however short.
        length = max(1, room * views // most) if views and views > 0 else 0
        lines.append(f"{day}  {shown:>{digits}} {block * length}".rstrip())
    return "\n".join([*lines, *([""] if lines else []), _figures(told)]) + "\n"


def _rows(told: Stats) -> list[tuple[str, str]]:
    return [(_shown(day), _shown(views)) for day, views in told.daily_views]


def _figures(told: Stats) -> str:
    return f"{_shown(told.active)} active, {_shown(told.expired)} expired, {_shown(told.total_viewed)} views in total"


def _shown(value: object) -> str:
    return "-" if value is None else str(value)


def _members(told: Stats) -> dict[str, Any]:
    days = [{"date": None if day is None else str(day), "count": views} for day, views in told.daily_views]
    shares = {"active": told.active, "expired": told.expired, "total_viewed": told.total_viewed}
    return {"shares": shares, "daily_views": days}
