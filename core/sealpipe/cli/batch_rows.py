"""`sealpipe batch list | status | report | remind | reissue | cancel | link | purge`: batches that
a database has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from sealpipe.cli import render
from sealpipe.cli.batch_output import (
    describe_change,
    draw_bar,
    format_change,
    format_counts,
    format_row,
    warn_of_others,
)
from sealpipe.cli.batch_store import open_named, open_store_of, write_file
from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, Command, options
from sealpipe.errors import FailedRowsError, UsageError

if TYPE_CHECKING:
    from sealpipe.batch.engine.actions import Outcome
    from sealpipe.batch.engine.advance import Engine
    from sealpipe.batch.report.figures import BatchReport, ReportedRow

_LONG_ROUND = 120
"""Seconds between two looks at a row that are worth a line."""


@click.command("list", cls=Command)
@options("batch", only=("database",), common=COMMON)
def list_(**values: Any) -> None:
    """List the batches of this credential: rows by state, a bar, and when the next row is due."""
    from sealpipe.batch.report.files import format_moment

    with open_store_of(values) as (_, store):
        found = [
            (each.name, store.count_states(each), store.find_next_due(each))
            for each in store.list_batches()
        ]
        warn_of_others(store.count_others())
    if values["output"] == "json":
        rows = [
            {"name": name, "counts": counts, "next_due": format_moment(due)}
            for name, counts, due in found
        ]
        render.print_json({"batches": rows})
        return
    for name, counts, due in found:
        next_due = "" if due is None else f"\tnext {format_moment(due)}"
        render.print_lines([f"{name}\t{format_counts(counts)}\t{draw_bar(counts)}{next_due}"])


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database",), common=COMMON)
def status(name: str, **values: Any) -> None:
    """Show each row of a batch: its state, what comes next and when, what went wrong and what to
    do.
    """
    from sealpipe.batch.report.files import to_members

    as_json = values["output"] == "json"
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        report = _read_report(engine, with_history=as_json)
        seconds = _estimate_round(engine, report)
    if as_json:
        render.print_json({**to_members(report), "seconds_between_polls": round(seconds)})
        return
    render.print_lines([f"{report.name}\t{format_counts(report.counts)}", draw_bar(report.counts)])
    render.print_lines(format_row(report, row) for row in report.rows)
    if seconds > _LONG_ROUND:
        render.print_note(
            f"at the plan's rate, each row is looked at every {round(seconds / 60)} minutes at most"
        )


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database", "html", "csv", "json"), common=COMMON)
def report(name: str, **values: Any) -> None:
    """Write a report of a batch: numbers, submissions over time, and each row.

    It holds no secret and no link.

    sealpipe batch report vendors-2026-q4 --html report.html --csv report.csv
    """
    files = {kind: values[kind] for kind in _WRITERS if values[kind] is not None}
    if not files:
        raise UsageError(
            "the report has no file", remedy="give --html FILE, --csv FILE or --json FILE"
        )
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        found = _read_report(engine, with_history=True)
    for kind, file in files.items():
        write_file(file, _WRITERS[kind](found).encode())
        render.print_note(f"wrote {render.escape(file)}")
    if values["output"] == "json":
        render.print_json({"name": found.name, "files": files})


def _write_html(found: BatchReport) -> str:
    from sealpipe.batch.report.page import make_page

    return make_page(found)


def _write_csv(found: BatchReport) -> str:
    from sealpipe.batch.report.files import to_csv

    return to_csv(found)


def _write_json(found: BatchReport) -> str:
    import json

    from sealpipe.batch.report.files import to_members

    return json.dumps({"schema": render.SCHEMA, **to_members(found)}, indent=1) + "\n"


_WRITERS = {"html": _write_html, "csv": _write_csv, "json": _write_json}


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@options("batch", only=("database",), common=COMMON)
def remind(name: str, keys: Sequence[str], **values: Any) -> None:
    """Send the links of these rows once more, now; without a KEY, of all rows that wait."""
    _act(name, "remind", keys, values)


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@options("batch", only=("database",), common=COMMON)
def reissue(name: str, keys: Sequence[str], **values: Any) -> None:
    """End what is out for these rows, then create and send it anew; without a KEY, for all rows
    that expired.

    Uses what the file said at the last run. Submissions to the old request stay at the service.
    """
    _act(name, "reissue", keys, values)


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@options("batch", only=("database",), common=COMMON)
def cancel(name: str, keys: Sequence[str], **values: Any) -> None:
    """Expire what is out for these rows; without a KEY, for all rows that are not over.

    Destroys no submission.
    """
    _act(name, "cancel", keys, values)


def _act(
    name: str,
    verb: Literal["remind", "reissue", "cancel"],
    keys: Sequence[str],
    values: dict[str, Any],
) -> None:
    from sealpipe.batch.engine.actions import PARTICIPLES, act

    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        outcomes = act(engine, verb, keys)
        postponed = engine.row_limit.take_warnings()
    if values["output"] == "json":
        render.print_json({"name": name, "rows": [_describe_outcome(each) for each in outcomes]})
    else:
        for each in outcomes:
            _print_outcome(each)
        if not outcomes:
            render.print_note(f"no row of {render.escape(name)} can be {PARTICIPLES[verb]}")
    for warning in postponed:
        render.print_note(warning)
    failed = sum(bool(each.problem) for each in outcomes)
    if failed:
        raise FailedRowsError(f"{render.count(failed, 'row')} failed", remedy=_name_status(name))


def _name_status(name: str) -> str:
    return f"`sealpipe batch status {render.escape(name)}` shows each row"


def _print_outcome(outcome: Outcome) -> None:
    for change in outcome.changes:
        render.print_note(format_change(change))
    if outcome.problem and not any(change.problem for change in outcome.changes):
        remedy = f"; {outcome.remedy}" if outcome.remedy else ""
        render.print_note(f"{render.escape(outcome.key)}: {outcome.problem}{remedy}")


def _describe_outcome(outcome: Outcome) -> dict[str, Any]:
    changes = [describe_change(each) for each in outcome.changes]
    return {
        "key": outcome.key,
        "changes": changes,
        "problem": outcome.problem,
        "remedy": outcome.remedy,
    }


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("key", required=False, default="")
@options("batch", only=("database",), common=COMMON)
def link(name: str, key: str, **values: Any) -> None:
    """Print the collect link of a row. It is no secret: anyone with it can submit, but not read."""
    from sealpipe.batch.engine.actions import show_link

    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        found = show_link(engine, key)
    if values["output"] == "json":
        render.print_json({"name": name, "key": key, "collect_link": found})
    else:
        render.print_result(f"{found}\n")


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database", "older_than"), common=COMMON)
def purge(name: str, **values: Any) -> None:
    """Remove a batch from the database, with the names and addresses of its rows.

    Every row must be over.

    Nothing is asked of the service. With --older-than, only if nothing has changed for that long.
    """
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        is_old, rows = _check_purge(engine, values["older_than"])
        if is_old:
            store.purge_batch(engine.batch)
    done = "purged" if is_old else "kept: its last change is more recent"
    render.print_note(f"{render.escape(name)}: {done}")
    if values["output"] == "json":
        render.print_json({"name": name, "purged": is_old, "rows": rows})


def _check_purge(engine: Engine, older_than: Any) -> tuple[bool, int]:
    """Return whether a batch is old enough to be removed, and the number of its rows.

    UsageError if one is not over.
    """
    from sealpipe.batch.steps.states import State, is_over

    rows = list(engine.store.list_rows(engine.batch))
    live = sum(not is_over(State(row.state)) for row in rows)
    if live:
        are = "1 row is" if live == 1 else f"{live} rows are"
        raise UsageError(
            f"{are} not over: nothing was removed",
            remedy=f"wait, or end them with `sealpipe batch cancel {engine.batch.name}`",
        )
    last = max((row.since for row in rows), default=engine.batch.created_at)
    age = (engine.store.now() - last) / 1_000_000
    return older_than is None or age >= older_than.total_seconds(), len(rows)


def list_troubled(engine: Engine) -> list[ReportedRow]:
    """Return the rows that failed or are blocked."""
    from sealpipe.batch.steps.states import is_troubled

    return [row for row in _read_report(engine).rows if is_troubled(row.state)]


def _read_report(engine: Engine, *, with_history: bool = False) -> BatchReport:
    """Read a batch as it is now."""
    from sealpipe.batch.report.figures import make_report
    from sealpipe.batch.report.status import read_facts

    rows = read_facts(engine, with_history=with_history)
    kind, service = engine.definition.kind, engine.session.base_url
    return make_report(
        engine.batch.name, kind, service, rows, engine.schedule, engine.store.now(), render.redact
    )


def _estimate_round(engine: Engine, report: BatchReport) -> float:
    """Return the seconds between two looks at a row if looks take half of the rate."""
    from sealpipe.batch.engine.advance import DEFAULT_RATE

    per_minute = engine.store.rate.read().calls_per_minute or DEFAULT_RATE
    return (len(report.rows) - report.over) * 60 / (per_minute / 2)


COMMANDS = (list_, status, report, remind, reissue, cancel, link, purge)
"""The commands of this module."""
