"""`sealpipe batch`: the group, and its commands that take a file.

Those that take a batch's name: `batch_rows.py`.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sealpipe import signals
from sealpipe.batch.database import opening
from sealpipe.batch.database.records import Batch
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import Change
from sealpipe.batch.engine.looks import Extent
from sealpipe.batch.engine.plan import dump_plan, read_plan
from sealpipe.batch.engine.session import adopt as adopt_rows
from sealpipe.batch.engine.session import run_batch
from sealpipe.batch.engine.sync import make_plan
from sealpipe.batch.engine.worker import Worker
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.reading import inspect_definition, read_definition
from sealpipe.batch.file.recipients import check_recipients
from sealpipe.batch.file.rows import Row as FileRow
from sealpipe.batch.steps.states import State
from sealpipe.cli import batch_rows, render
from sealpipe.cli.batch_output import (
    RunProgress,
    check_result,
    format_change,
    format_plan_counts,
    format_planned,
    print_run,
    warn_of_others,
)
from sealpipe.cli.batch_store import (
    open_database_of,
    open_named,
    open_store_of,
    read_address,
    write_file,
)
from sealpipe.errors import UsageError
from sealpipe.session import Session


def plan(file: str, **values: Any) -> None:
    """Run `sealpipe batch plan`."""
    with open_store_of(values) as (session, store):
        definition = _read_file(file, session, store)
        planned = make_plan(store, definition, session.base_url, session.batch_rows_per_hour)
    if values["out"] is not None:
        write_file(values["out"], dump_plan(planned))
    if values["output"] == "json":
        render.print_json(planned.to_members())
    else:
        render.print_lines(map(format_planned, planned.rows))
    render.print_note(format_plan_counts(planned))


def run(file: str, **values: Any) -> None:
    """Run `sealpipe batch run`."""
    if values["now"] and values["plan"] is not None:
        raise UsageError(
            "--now does more than the plan says",
            remedy="run the plan, then `sealpipe batch collect NAME`",
        )
    approved = None if values["plan"] is None else read_plan(Path(values["plan"]))
    progress = RunProgress(as_json=values["output"] == "json")
    looks: Extent = "all" if values["now"] else "stale" if progress.is_terminal else "scheduled"
    with open_store_of(values) as (session, store):
        definition = _read_file(file, session, store)
        try:
            result = run_batch(
                session,
                store,
                definition,
                seconds=values["for"],
                only=values["only"],
                approved=approved,
                looks="scheduled" if approved is not None else looks,
                on_change=progress,
            )
        finally:
            progress.clear()
        troubled = []
        if result.failed:
            troubled = batch_rows.list_troubled(open_named(session, store, definition.name))
    print_run(result, troubled, progress, as_json=values["output"] == "json")
    check_result(result, detailed=values["detailed_exit_code"])


def worker(**values: Any) -> None:
    """Run `sealpipe batch worker`."""
    with open_store_of(values) as (session, store):
        # made here: the worker's threads have no command whose options they could read
        session.registry()
        made = Worker(session, store, on_change=_print_change)
        with ExitStack() as stack:
            if values["metrics"] is not None:
                from sealpipe.batch.engine.metrics import MetricsServer, write_metrics

                host, port = values["metrics"]
                stack.enter_context(
                    MetricsServer(host, port, lambda: write_metrics(store, made.calls))
                )
            signals.call_on_signal(made.stop)
            render.print_note(f"working on the batches in the {render.escape(store.description)}")
            warn_of_others(store.count_others())
            made.run(values["for"])
    render.print_note("stopped")


def _print_change(batch: Batch, change: Change) -> None:
    render.print_note(f"{batch.name}: {format_change(change)}")


def adopt(file: str, **values: Any) -> None:
    """Run `sealpipe batch adopt`."""
    with open_store_of(values) as (session, store):
        definition = read_definition(file)
        found = adopt_rows(session, store, definition)
    if values["output"] == "json":
        names = ("key", "short_code", "generation", "is_blocked")
        adopted = [{name: getattr(each, name) for name in names} for each in found]
        render.print_json({"name": definition.name, "adopted": adopted})
        return
    for each in found:
        state = "\tblocked" if each.is_blocked else ""
        render.print_lines(
            [f"{render.escape(each.key)}\t{render.escape(each.short_code) or '-'}{state}"]
        )
    known, blocked = (
        sum(bool(each.short_code) for each in found),
        sum(each.is_blocked for each in found),
    )
    render.print_note(f"{render.count(known, 'row')} found, {blocked} blocked")


def prepare_tables(values: dict[str, Any]) -> None:
    found = open_database_of(values, read_address(values))
    try:
        opening.prepare_tables(found)
    finally:
        found.close()
    render.print_note(f"the tables in the {render.escape(found.description)} are ready")
    if values["output"] == "json":
        render.print_json({"database": found.description, "ready": True})


def _read_file(file: str, session: Session, store: BatchStore) -> BatchDefinition:
    """Read and check a batch file.

    BatchFileError tells all mistakes, those that only plugins know among them.

    Plugins check only rows of which nothing is out: a channel can refuse what it has delivered,
    such as a new file.
    """

    definition, mistakes = inspect_definition(file)
    if definition is None:
        mistakes.raise_all()
    assert definition is not None  # noqa: S101 - without one there is a mistake
    new = _select_new(definition, store)
    check_recipients(replace(definition, rows=new), session.registry(), mistakes)
    if len(mistakes) and _select_new(definition, store) != new:
        return _read_file(file, session, store)  # a worker has delivered some of them meanwhile
    mistakes.raise_all()
    return definition


def _select_new(definition: BatchDefinition, store: BatchStore) -> tuple[FileRow, ...]:
    """Return the rows of which nothing is out."""
    batch = store.find_batch(definition.name)
    rows = () if batch is None else store.list_rows(batch, contents=True)
    out = {row.key for row in rows if row.state != State.NEW}
    return tuple(row for row in definition.rows if row.key not in out)
