"""`sealpipe batch list | status | report | collect | remind | reissue | cancel | link | rekey |
purge`: batches that a database has.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sealpipe.batch.engine.actions import act, show_link
from sealpipe.batch.engine.advance import DEFAULT_RATE, Engine
from sealpipe.batch.engine.outcome import PARTICIPLES, Outcome, Verb
from sealpipe.batch.report.figures import BatchReport, ReportedRow, make_report
from sealpipe.batch.report.files import format_moment, to_csv, to_members
from sealpipe.batch.report.page import make_page
from sealpipe.batch.report.status import read_facts
from sealpipe.batch.steps.states import State, is_over, is_troubled
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
from sealpipe.cli.batch_watch import watch_rows
from sealpipe.errors import FailedRowsError, PendingError, UsageError

_LONG_ROUND = 120
"""Seconds between two looks at a row that are worth a line."""


def list_(**values: Any) -> None:
    """Run `sealpipe batch list`."""
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


def status(name: str, **values: Any) -> None:
    """Run `sealpipe batch status`."""
    as_json = values["output"] == "json"
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        if values["watch"]:
            watch_rows(
                lambda: store.history.count_changes(engine.batch),
                lambda: _read_report(engine),
                as_json=as_json,
            )
            return
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


def report(name: str, **values: Any) -> None:
    """Run `sealpipe batch report`."""
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
    return make_page(found)


def _write_csv(found: BatchReport) -> str:
    return to_csv(found)


def _write_json(found: BatchReport) -> str:
    return json.dumps({"schema": render.SCHEMA, **to_members(found)}, indent=1) + "\n"


_WRITERS = {"html": _write_html, "csv": _write_csv, "json": _write_json}


def act_on_rows(
    name: str,
    verb: Verb,
    keys: Sequence[str],
    values: dict[str, Any],
) -> None:
    """Run `sealpipe batch collect | remind | reissue | cancel`."""
    as_json = values["output"] == "json"
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        outcomes = act(engine, verb, keys, (lambda _: None) if as_json else _print_outcome)
        postponed = engine.row_limit.take_warnings()
    if as_json:
        render.print_json({"name": name, "rows": [_describe_outcome(each) for each in outcomes]})
    elif not outcomes:
        none = {"collect": "waits for a submission"}.get(verb, f"can be {PARTICIPLES[verb]}")
        render.print_note(f"no row of {render.escape(name)} {none}")
    for warning in postponed:
        render.print_note(warning)
    failed = sum(bool(each.problem) for each in outcomes)
    if failed:
        raise FailedRowsError(f"{render.count(failed, 'row')} failed", remedy=_name_status(name))
    if outcomes and verb == "collect" and all(map(_is_pending, outcomes)):
        raise PendingError(
            "no submission yet: "
            + ("1 row waits" if len(outcomes) == 1 else f"{len(outcomes)} rows wait"),
            remedy=_name_status(name),
        )


def _is_pending(outcome: Outcome) -> bool:
    """Return whether a row was looked at, and still waits."""
    return outcome.state == State.WAITING and not outcome.problem


def _name_status(name: str) -> str:
    return f"`sealpipe batch status {render.escape(name)}` shows each row"


def _print_outcome(outcome: Outcome) -> None:
    if not outcome.changes and _is_pending(outcome):
        render.print_note(f"{render.escape(outcome.key)}: no submission yet")
    for change in outcome.changes:
        render.print_note(format_change(change))
    if outcome.problem and not any(change.problem for change in outcome.changes):
        remedy = f"; {outcome.remedy}" if outcome.remedy else ""
        render.print_note(f"{render.escape(outcome.key)}: {outcome.problem}{remedy}")


def _describe_outcome(outcome: Outcome) -> dict[str, Any]:
    changes = [describe_change(each) for each in outcome.changes]
    return {
        "key": outcome.key,
        "state": outcome.state,
        "changes": changes,
        "problem": outcome.problem,
        "remedy": outcome.remedy,
    }


def link(name: str, key: str, **values: Any) -> None:
    """Run `sealpipe batch link`."""
    with open_store_of(values) as (session, store):
        engine = open_named(session, store, name)
        found = show_link(engine, key)
    if values["output"] == "json":
        render.print_json({"name": name, "key": key, "collect_link": found})
    else:
        render.print_result(f"{found}\n")


def rekey(name: str, **values: Any) -> None:
    """Run `sealpipe batch rekey`."""
    with open_store_of(values) as (session, store):
        batch = open_named(session, store, name).batch
        with store.lock_runner():
            store.rekey(batch)
        rows = sum(store.count_states(batch).values())
    render.print_note(
        f"{render.escape(name)}: {render.count(rows, 'row')} sealed under a new data key"
    )
    if values["output"] == "json":
        render.print_json({"name": name, "rows": rows})


def purge(name: str, **values: Any) -> None:
    """Run `sealpipe batch purge`."""
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

    return [row for row in _read_report(engine).rows if is_troubled(row.state)]


def _read_report(engine: Engine, *, with_history: bool = False) -> BatchReport:
    """Read a batch as it is now."""

    rows = read_facts(engine, with_history=with_history)
    kind, service = engine.definition.kind, engine.session.base_url
    return make_report(
        engine.batch.name, kind, service, rows, engine.schedule, engine.store.now(), render.redact
    )


def _estimate_round(engine: Engine, report: BatchReport) -> float:
    """Return the seconds between two looks at a row if looks take half of the rate."""

    per_minute = engine.store.rate.read().calls_per_minute or DEFAULT_RATE
    return (len(report.rows) - report.over) * 60 / (per_minute / 2)
