"""A report as JSON members and as CSV for a spreadsheet; and its words for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sealpipe.api.responses import escape_text
from sealpipe.batch.report.figures import BatchReport, HistoryLine, ReportedRow, Timeline
from sealpipe.batch.steps.states import Step
from sealpipe.parsing import format_time

_STEP_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "request": {Step.POLL: "look for a submission", Step.REMIND: "remind"},
    "share": {Step.POLL: "check whether it was opened", Step.REMIND: "remind"},
}
_COLUMNS: Final = (
    "key",
    "state",
    "outcome",
    "since",
    "next_step",
    "next_at",
    "delivered_at",
    "used_at",
    "expires_at",
    "submissions",
    "stored",
    "reminders",
    "generation",
    "problem",
    "remedy",
    "exit_code",
)
_TIMES: Final = ("since", "next_at", "delivered_at", "used_at", "expires_at")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a cell a formula, the forms of full width included: some spreadsheets take these,
too.
"""
MAX_TEXT: Final = 1000
"""Characters of a text that are shown."""


def to_datetime(moment: int) -> datetime:
    """Return a time in microseconds since 1970 as a datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)


def format_moment(moment: int | None) -> str | None:
    """Return a time in microseconds since 1970 as RFC 3339; None for None."""
    return None if moment is None else format_time(to_datetime(moment))


def name_step(report: BatchReport, row: ReportedRow) -> str:
    """Return a row's next step in words; empty if nothing comes by itself."""
    return _STEP_NAMES[report.kind].get(row.next_step, row.next_step)


def describe_event(line: HistoryLine) -> str:
    """Return what happened in words.

    `collected 2 submissions`, `failed: the server did not answer`.
    """
    content = line.content
    text = str(content.get("what", ""))
    if isinstance(number := content.get("submissions"), int):
        text += f" {number} submission" + ("" if number == 1 else "s")
    for name in ("by", "for", "because"):
        if name in content:
            text += f", {name} {content[name]}"
    for problem in (content.get("problem"), _join_unclear(content.get("unclear"))):
        if problem:
            text += f": {problem}"
    return escape_text(text, MAX_TEXT)


def _join_unclear(unclear: Any) -> str:
    return (
        f"unclear whether it reached {', '.join(map(str, unclear))}"
        if isinstance(unclear, list | tuple)
        else ""
    )


def to_members(report: BatchReport) -> dict[str, Any]:
    """Return a report as JSON members."""
    return {
        "kind": "batch-report",
        "name": report.name,
        "of": report.kind,
        "service": report.service,
        "made_at": format_moment(report.made_at),
        "total": len(report.rows),
        "counts": {str(state): number for state, number in report.counts.items()},
        "used": report.used,
        "submissions": report.add_up("submissions"),
        "stored": report.add_up("stored"),
        "reminders": report.add_up("reminders"),
        "timeline": None if report.timeline is None else _describe_timeline(report.timeline),
        "rows": [_describe_row(row) for row in report.rows],
    }


def _describe_timeline(timeline: Timeline) -> dict[str, Any]:
    begin = {"begin": format_moment(timeline.begin), "step_seconds": timeline.step // 1_000_000}
    return {**begin, "delivered": list(timeline.delivered), "used": list(timeline.used)}


def _describe_row(row: ReportedRow) -> dict[str, Any]:
    members: dict[str, Any] = {**list_cells(row), "history": []}
    members["history"] = [{"at": format_moment(line.at), **line.content} for line in row.history]
    return members


def list_cells(row: ReportedRow) -> dict[str, Any]:
    """Return a row as JSON members, without its history."""
    cells = {name: getattr(row, name) for name in _COLUMNS}
    times = {name: format_moment(cells[name]) for name in _TIMES}
    return {**cells, **times, "state": str(row.state)}


def to_csv(report: BatchReport) -> str:
    """Return the rows of a report as CSV, with a BOM.

    Without it, spreadsheets take UTF-8 for something else.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(_COLUMNS)
    for row in report.rows:
        writer.writerow([_defuse(value) for value in list_cells(row).values()])
    return "\ufeff" + file.getvalue()


def _defuse(value: Any) -> str | int:
    if not isinstance(value, str):
        return "" if value is None else int(value)
    text = escape_text(value, MAX_TEXT)
    return f"'{text}" if value.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text
