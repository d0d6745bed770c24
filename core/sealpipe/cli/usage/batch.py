"""`sealpipe batch`: the group, and its commands that take a file: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, SettingsGroup, options
from sealpipe.cli.usage import batch_rows

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
    from sealpipe.cli import batch

    batch.plan(file, **values)


@batch.command(cls=Command)
@click.argument("file")
@options(
    "batch", only=("database", "for", "only", "now", "plan", "detailed_exit_code"), common=COMMON
)
def run(file: str, **values: Any) -> None:
    """Do what is due for the rows of a file. Safe to run again at any time, and to kill.

    Ends when nothing is due, even if rows still wait; with --for, after that time. Exits with 18 if
    rows failed or are blocked. On a terminal, waiting rows that were not looked at for half a
    minute are looked at, too, within a tenth of the rate.

    sealpipe batch run vendors.toml
    """
    from sealpipe.cli import batch

    batch.run(file, **values)


@batch.command(cls=Command)
@options("batch", only=("database", "for", "metrics"), common=COMMON)
def worker(**values: Any) -> None:
    """Do what becomes due in every batch of the database, until stopped (Ctrl-C, SIGTERM): what has
    begun ends.

    PostgreSQL: start as many as you like, on any machines. SQLite: one at a time. `run` of a file
    still begins a batch.
    """
    from sealpipe.cli import batch

    batch.worker(**values)


@batch.command(cls=Command)
@click.argument("file")
@options("batch", only=("database",), common=COMMON)
def adopt(file: str, **values: Any) -> None:
    """Find the requests of a file again, after its database was lost or restored.

    Creates and sends nothing.

    A row is blocked if it is not known whether a message was sent meanwhile (`remind` sends it), or
    whether a share, or a request that has ended, exists (`reissue` makes another).
    """
    from sealpipe.cli import batch

    batch.adopt(file, **values)


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
    """Upgrade the tables to this version of sealpipe and procrastinate, with a role that may.

    Stop all workers before. Batches go on where they are.
    """
    _prepare_tables(values)


def _prepare_tables(values: dict[str, Any]) -> None:
    from sealpipe.cli import batch

    batch.prepare_tables(values)
