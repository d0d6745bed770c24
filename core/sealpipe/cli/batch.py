"""`sealpipe batch`: the group, and its commands that take a file.

Those that take a batch's name: `batch_rows.py`.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    get_ca_file,
    open_database_of,
    open_named,
    open_store_of,
    read_address,
    write_file,
)
from sealpipe.cli.command import COMMON, Command, SettingsGroup, options

if TYPE_CHECKING:
    from sealpipe.batch.database.records import Batch
    from sealpipe.batch.database.store import BatchStore
    from sealpipe.batch.engine.advance import Change
    from sealpipe.batch.engine.worker import Worker
    from sealpipe.batch.file.definition import BatchDefinition
    from sealpipe.session import Session

_DATABASE_ONLY = ("state_dir", "ca_file", "deadline", "output")


@click.group(cls=SettingsGroup)
def batch() -> None:
    """Request or share secrets for each row of a file, and follow every row to its end.

    `run` does what is due. Call it as often as you like, from any machine that has the database.
    """


for command in batch_rows.COMMANDS:
    batch.add_command(command)


@batch.command(cls=Command)
@click.argument("file")
@options("batch", only=("database", "out"), common=COMMON)
def plan(file: str, **values: Any) -> None:
    """Show what `run` would do now, row by row. Sends nothing, and changes no row.

    sealpipe batch plan vendors.toml --out approved.json
    """
    from sealpipe.batch.engine.plan import dump_plan
    from sealpipe.batch.engine.sync import make_plan

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


@batch.command(cls=Command)
@click.argument("file")
@options("batch", only=("database", "for", "only", "plan", "detailed_exit_code"), common=COMMON)
def run(file: str, **values: Any) -> None:
    """Do what is due for the rows of a file. Safe to run again at any time, and to kill.

    Ends when nothing is due, even if rows still wait; with --for, after that time. Exits with 18 if
    rows failed or are blocked.

    sealpipe batch run vendors.toml
    """
    from sealpipe.batch.engine.plan import read_plan
    from sealpipe.batch.engine.session import run_batch

    approved = None if values["plan"] is None else read_plan(Path(values["plan"]))
    progress = RunProgress(as_json=values["output"] == "json")
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
                on_change=progress,
            )
        finally:
            progress.clear()
        troubled = []
        if result.failed:
            troubled = batch_rows.list_troubled(open_named(session, store, definition.name))
    print_run(result, troubled, progress, as_json=values["output"] == "json")
    check_result(result, detailed=values["detailed_exit_code"])


@batch.command(cls=Command)
@options("batch", only=("database", "for", "metrics"), common=COMMON)
def worker(**values: Any) -> None:
    """Do what becomes due in every batch of the database, until stopped (Ctrl-C, SIGTERM): what has
    begun ends.

    PostgreSQL: start as many as you like, on any machines. SQLite: one at a time. `run` of a file
    still begins a batch.
    """
    from sealpipe import signals

    address = read_address(values)
    with open_store_of(values, address) as (session, store):
        # made here: the worker's threads have no command whose options they could read
        session.registry()
        if address is None:
            from sealpipe.batch.engine.local_worker import LocalWorker

            made: LocalWorker | Worker = LocalWorker(session, store, on_change=_print_change)
        else:
            from sealpipe.batch.engine.worker import Worker

            made = Worker(session, store, address, on_change=_print_change)
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


@batch.command(cls=Command)
@click.argument("file")
@options("batch", only=("database",), common=COMMON)
def adopt(file: str, **values: Any) -> None:
    """Find the requests of a file again, after its database was lost or restored.

    Creates and sends nothing.

    A row is blocked if it is not known whether a message was sent meanwhile (`remind` sends it), or
    whether a share, or a request that has ended, exists (`reissue` makes another).
    """
    from sealpipe.batch.engine.session import adopt as adopt_rows
    from sealpipe.batch.file.reading import read_definition

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


@batch.group("database", cls=SettingsGroup)
def database() -> None:
    """Make or upgrade the tables of a PostgreSQL database. SQLite needs neither."""


@database.command(cls=Command)
@options("batch", only=("database",), common=_DATABASE_ONLY)
def init(**values: Any) -> None:
    """Make the tables, with a role that may. Afterwards a smaller one is enough.

    It needs SELECT, INSERT, UPDATE and DELETE on all tables whose names begin with sealpipe_ or
    procrastinate_, and USAGE on the sequences of the latter: without it, a worker ends at once.
    """
    _prepare_tables(values)


@database.command(cls=Command)
@options("batch", only=("database",), common=_DATABASE_ONLY)
def upgrade(**values: Any) -> None:
    """Upgrade the tables to this version of sealpipe, with a role that may.

    Batches go on where they are.
    """
    _prepare_tables(values)


def _prepare_tables(values: dict[str, Any]) -> None:
    from sealpipe.batch.database.opening import prepare_schema

    address = read_address(values)
    found = open_database_of(values, address)
    try:
        prepare_schema(found)
    finally:
        found.close()
    if address is not None:
        import asyncio

        from sealpipe.batch.engine.worker import prepare_queue

        asyncio.run(prepare_queue(address, get_ca_file(values)))
    render.print_note(f"the tables in the {render.escape(found.description)} are ready")
    if values["output"] == "json":
        render.print_json({"database": found.description, "ready": True})


def _read_file(file: str, session: Session, store: BatchStore) -> BatchDefinition:
    """Read and check a batch file.

    BatchFileError tells all mistakes, those that only plugins know among them.

    Plugins check only rows of which nothing is out: a channel can refuse what it has delivered,
    such as a new file.
    """
    from sealpipe.batch.file.reading import inspect_definition
    from sealpipe.batch.file.recipients import check_recipients
    from sealpipe.batch.steps.states import State

    definition, mistakes = inspect_definition(file)
    if definition is None:
        mistakes.raise_all()
    assert definition is not None  # noqa: S101 - without one there is a mistake
    batch = store.find_batch(definition.name)
    rows = () if batch is None else store.list_rows(batch, contents=True)
    out = {row.key for row in rows if row.state != State.NEW}
    new = tuple(row for row in definition.rows if row.key not in out)
    check_recipients(replace(definition, rows=new), session.registry(), mistakes)
    mistakes.raise_all()
    return definition
