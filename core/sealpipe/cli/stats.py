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
        figures = client.get_stats()
    if values["output"] == "json":
        render.print_json(_to_members(figures))
    elif sys.stdout is not None and sys.stdout.isatty():
        import shutil

        block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
        render.print_result(draw_chart(figures, shutil.get_terminal_size().columns, block))
    else:
        render.print_result("".join(f"{day}\t{views}\n" for day, views in _list_rows(figures)))
        render.print_note(_format_totals(figures))


def draw_chart(figures: Stats, columns: int, block: str) -> str:
    """Draw a bar for each day, scaled to `columns`, and the figures below. Ends in a newline."""
    rows = _list_rows(figures)
    digits = max((len(views) for _, views in rows), default=0)
    highest = max((max(0, views or 0) for _, views in figures.daily_views), default=0)
    width = max(1, min(columns, 100) - len("2026-01-01  ") - digits - 2)
    lines = []
    for (day, shown), (_, views) in zip(rows, figures.daily_views, strict=True):
        # A day with any view has a bar, however short.
        length = max(1, width * views // highest) if views and views > 0 else 0
        lines.append(f"{day}  {shown:>{digits}} {block * length}".rstrip())
    return "\n".join([*lines, *([""] if lines else []), _format_totals(figures)]) + "\n"


def _list_rows(figures: Stats) -> list[tuple[str, str]]:
    return [(_format_count(day), _format_count(views)) for day, views in figures.daily_views]


def _format_totals(figures: Stats) -> str:
    active, expired, views = map(_format_count, (figures.active, figures.expired, figures.total_viewed))
    return f"{active} active, {expired} expired, {views} views in total"


def _format_count(value: object) -> str:
    return "-" if value is None else str(value)


def _to_members(figures: Stats) -> dict[str, Any]:
    days = [{"date": None if day is None else str(day), "count": views} for day, views in figures.daily_views]
    shares = {"active": figures.active, "expired": figures.expired, "total_viewed": figures.total_viewed}
    return {"shares": shares, "daily_views": days}
