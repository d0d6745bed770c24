"""`sealpipe batch status --watch`: a batch as it changes.

A terminal shows it in place; elsewhere each row that changes is one more line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.report.figures import BatchReport
from sealpipe.batch.report.files import list_cells
from sealpipe.cli import render
from sealpipe.cli.batch_output import draw_bar, format_counts, format_row

INTERVAL: Final = 1.0
"""Seconds between two looks at the database. The service is not asked."""
_OTHER_LINES: Final = 4
"""Lines of a view besides those of the rows, with that of the cursor."""


def watch_rows(
    count_changes: Callable[[], int], read_report: Callable[[], BatchReport], *, as_json: bool
) -> None:
    """Show the rows of a batch as they change, until each is over.

    `count_changes` returns what is another number after each change. A database that does not
    answer is waited for.
    """
    is_terminal = not as_json and sys.stdout is not None and sys.stdout.isatty()
    show = _View().show if is_terminal else _Changes(as_json=as_json).show
    seen, is_waiting = None, False
    while True:
        try:
            changes = count_changes()
            report = None if changes == seen else read_report()
        except DatabaseUnavailableError as error:
            if not is_waiting:
                render.print_note(f"{error.message}: waiting for it")
            seen, is_waiting = None, True
        else:
            if is_waiting:
                render.print_note("it answers again")
                is_waiting = False
                if is_terminal:
                    show = _View().show  # below the notes
            if report is not None:
                show(report)
                seen = changes
                if report.over == len(report.rows):
                    return
        time.sleep(INTERVAL)


class _View:
    """The batch on a terminal, in place of what was shown before."""

    def __init__(self) -> None:
        self._lines = 0

    def show(self, report: BatchReport) -> None:
        """Show it: as many rows as there is room for, first what needs attention."""
        room = max(1, render.get_height() - _OTHER_LINES)
        rows = [format_row(report, row) for row in report.rows]
        if len(rows) > room:
            left = len(rows) - room + 1
            rows = [*rows[: room - 1], f"and {render.count(left, 'more row')}"]
        lines = [f"{report.name}\t{format_counts(report.counts)}", draw_bar(report.counts), *rows]
        render.print_view(lines, over=self._lines)
        self._lines = len(lines)


class _Changes:
    """A line for each row, and one more each time that it has changed."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._seen: dict[str, tuple[object, ...]] = {}

    def show(self, report: BatchReport) -> None:
        """Print the rows that are not as they were."""
        for row in report.rows:
            told = (row.state, row.since, row.problem, row.reminders, row.submissions, row.stored)
            if self._seen.get(row.key) == told:
                continue
            self._seen[row.key] = told
            if self._as_json:
                render.print_json({"name": report.name, **list_cells(row)})
            else:
                render.print_lines([format_row(report, row)])
