"""What `sealpipe batch` prints: progress on stderr, on stdout plans, rows and counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sealpipe.batch.engine.advance import Change
from sealpipe.batch.engine.plan import BatchPlan, PlannedRow
from sealpipe.batch.engine.run import RunResult
from sealpipe.batch.report.figures import ATTENTION, BatchReport, ReportedRow
from sealpipe.batch.report.files import format_moment, name_step
from sealpipe.batch.steps.states import State, is_over, is_troubled
from sealpipe.cli import render
from sealpipe.errors import FailedRowsError, PendingError

_BAR_WIDTH = 40
_MAX_KEYS = 5
"""Ids of API keys that a warning names."""


class RunProgress:
    """Shows what changes: a status line on a terminal, elsewhere a line for each change."""

    def __init__(self, *, as_json: bool) -> None:
        self.is_terminal = render.is_terminal()
        self._is_quiet = as_json
        self._lock = threading.Lock()
        self._changes: Counter[str] = Counter()
        self._has_status = False
        self.printed_keys: set[str] = set()
        """The keys of rows whose last problem was printed."""

    def __call__(self, change: Change) -> None:
        with self._lock:
            self._changes[change.what] += 1
            if self.is_terminal:
                counts = ", ".join(f"{number} {what}" for what, number in self._changes.items())
                render.print_status(counts)
                self._has_status = True
            elif not self._is_quiet:
                self.printed_keys.add(change.key)
                render.print_note(format_change(change))

    def clear(self) -> None:
        """Clear the status line."""
        if self._has_status:
            render.print_status("")
            self._has_status = False


def format_change(change: Change) -> str:
    """Return a change as a line: `acme: failed: connection refused; check the address`."""
    line = f"{change.key}: {change.what}"
    return line + _append(change.problem, change.remedy)


def _append(problem: str, remedy: str) -> str:
    return (f": {problem}" if problem else "") + (f"; {remedy}" if problem and remedy else "")


def describe_change(change: Change) -> dict[str, Any]:
    """Return a change as JSON members."""
    members = {
        "key": change.key,
        "what": change.what,
        "problem": change.problem,
        "remedy": change.remedy,
    }
    return {name: value for name, value in members.items() if value}


def format_planned(row: PlannedRow) -> str:
    """Return a row of a plan as a line: action, tab, key, tab, why or when."""
    when = f"next {format_moment(row.at)}" if row.action == "wait" and row.at is not None else ""
    detail = row.detail or when
    if row.is_changed:
        detail = "; ".join(
            filter(None, (detail, "the file has changed: `sealpipe batch reissue` sends it"))
        )
    cells = (row.action, render.escape(row.key), detail + (f"; {row.remedy}" if row.remedy else ""))
    return "\t".join(cells).rstrip("\t")


def format_plan_counts(plan: BatchPlan) -> str:
    """Return the numbers of a plan: `12 rows: 8 create, 4 wait`."""
    return _format_counts(len(plan.rows), plan.counts)


def format_counts(counts: Mapping[Any, int]) -> str:
    """Return the number of rows in each state: `12 rows: 1 blocked, 3 waiting, 8 done`."""
    ordered = {str(state): counts[state] for state in ATTENTION if counts.get(state)}
    return _format_counts(sum(ordered.values()), ordered)


def _format_counts(total: int, counts: Mapping[Any, int]) -> str:
    parts = ", ".join(f"{number} {name}" for name, number in counts.items())
    return render.count(total, "row") + (f": {parts}" if parts else "")


def draw_bar(counts: Mapping[Any, int]) -> str:
    """Return a bar: `#` for rows that are over, `!` for those in trouble, `-` for the others.

    Any row shows.
    """
    total = sum(counts.values())
    if not total:
        return "[" + " " * _BAR_WIDTH + "]"
    parts = {"#": 0, "!": 0, "-": 0}
    for name, number in counts.items():
        state = State(name)
        parts["#" if is_over(state) else "!" if is_troubled(state) else "-"] += number
    widths = {
        mark: max(1, number * _BAR_WIDTH // total) if number else 0
        for mark, number in parts.items()
    }
    widest = max(widths, key=lambda mark: widths[mark])
    widths[widest] += _BAR_WIDTH - sum(widths.values())
    return "[" + "".join(mark * width for mark, width in widths.items()) + "]"


def format_row(report: BatchReport, row: ReportedRow) -> str:
    """Return a row of a batch as a line.

    Key, state, since, next step, problem and remedy, with tabs between.
    """
    step = name_step(report, row)
    if row.next_at is not None:
        step += " now" if row.next_at <= report.made_at else f" at {format_moment(row.next_at)}"
    problem = row.problem + (f"; {row.remedy}" if row.remedy else "")
    outcome = "" if row.outcome == str(row.state) else row.outcome
    cells = (
        render.escape(row.key),
        str(row.state),
        f"since {format_moment(row.since)}",
        step or outcome,
        problem,
    )
    return "\t".join(cells).rstrip("\t")


def warn_of_others(others: Mapping[str, int]) -> None:
    """Say which batches are passed over, by the id of their API key.

    Somebody may have rotated it.
    """
    if not others:
        return
    number, names = sum(others.values()), sorted(others)
    keys = ", ".join(names[:_MAX_KEYS]) + (" and others" if len(names) > _MAX_KEYS else "")
    batches = "1 batch" if number == 1 else f"{number} batches"
    render.print_note(
        f"warning: passed over {batches} of another API key ({keys}); after a rotation, "
        "set SEALPIPE_API_KEY_PREVIOUS "
        "to the old credential, and the new one takes over"
    )


def print_run(
    result: RunResult, troubled: Sequence[ReportedRow], progress: RunProgress, *, as_json: bool
) -> None:
    """Print what a run came to."""
    for warning in result.warnings:
        render.print_note(warning)
    if as_json:
        render.print_json(_describe_run(result, troubled))
        return
    for row in troubled:
        if row.key not in progress.printed_keys:
            render.print_note(
                f"{render.escape(row.key)}: {row.state}{_append(row.problem, row.remedy)}"
            )
    render.print_lines([f"{result.batch}\t{format_counts(result.counts)}"])
    if progress.is_terminal and result.waiting and result.next_due is not None:
        print_next(result)


def print_next(result: RunResult) -> None:
    """Tell a person when the next row is due, and how not to wait for it."""
    if result.unseen:
        rows = "1 waiting row was" if result.unseen == 1 else f"{result.unseen} waiting rows were"
        render.print_note(f"{rows} not looked at: `sealpipe batch run --now FILE` looks at all")
    render.print_note(f"next look at {format_moment(result.next_due)}; with --now at once")


def _describe_run(result: RunResult, troubled: Iterable[ReportedRow]) -> dict[str, Any]:
    names = ("key", "problem", "remedy", "exit_code")
    return {
        "name": result.batch,
        "changes": [describe_change(each) for each in result.changes],
        "counts": result.counts,
        "waiting": result.waiting,
        "failed": result.failed,
        "troubled": [
            {"state": str(row.state), **{name: getattr(row, name) for name in names}}
            for row in troubled
        ],
        "warnings": list(result.warnings),
        "next_due": format_moment(result.next_due),
        "calls": result.calls,
    }


def check_result(result: RunResult, *, detailed: bool) -> None:
    """Raise FailedRowsError if rows failed or are blocked.

    PendingError if rows still wait, if that is asked for.
    """
    status = f"`sealpipe batch status {result.batch}` shows each row"
    if result.stopped is not None:
        raise FailedRowsError(
            f"{result.stopped.message}; the rows that are left wait for the next run",
            remedy=result.stopped.remedy,
        )
    if result.failed:
        rows = "1 row failed or is" if result.failed == 1 else f"{result.failed} rows failed or are"
        raise FailedRowsError(f"{rows} blocked", remedy=status)
    if detailed and result.waiting:
        raise PendingError(
            "1 row still waits" if result.waiting == 1 else f"{result.waiting} rows still wait",
            remedy=status,
        )
