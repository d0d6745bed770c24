"""`sealpipe batch` with the name of a batch, such as `status` and `cancel`: options and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, Command, options


@click.command("list", cls=Command)
@options("batch", only=("database",), common=COMMON)
def list_(**values: Any) -> None:
    """List the batches of this credential: rows by state, a bar, and when the next row is due."""
    from sealpipe.cli import batch_rows

    batch_rows.list_(**values)


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database", "watch"), common=COMMON)
def status(name: str, **values: Any) -> None:
    """Show each row of a batch: its state, what comes next and when, what went wrong and what to
    do.

    With --watch, a terminal shows the rows as they change; elsewhere each row that changes is one
    more line.
    """
    from sealpipe.cli import batch_rows

    batch_rows.status(name, **values)


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database", "html", "csv", "json"), common=COMMON)
def report(name: str, **values: Any) -> None:
    """Write a report of a batch: numbers, submissions over time, and each row.

    It holds no secret and no link.

    sealpipe batch report vendors-2026-q4 --html report.html --csv report.csv
    """
    from sealpipe.cli import batch_rows

    batch_rows.report(name, **values)


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@options("batch", only=("database",), common=COMMON)
def collect(name: str, keys: Sequence[str], **values: Any) -> None:
    """Look for submissions to these rows now, and store them, whatever the schedule says; without a
    KEY, to all rows that wait.

    Reminds nobody. Exits with 15 if there is no submission to any of them yet.

    sealpipe batch collect vendors-2026-q4 acme
    """
    _act(name, "collect", keys, values)


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
    verb: Literal["collect", "remind", "reissue", "cancel"],
    keys: Sequence[str],
    values: dict[str, Any],
) -> None:
    from sealpipe.cli import batch_rows

    batch_rows.act_on_rows(name, verb, keys, values)


@click.command(cls=CodeCommand)
@click.argument("name")
@click.argument("key", required=False, default="")
@options("batch", only=("database",), common=COMMON)
def link(name: str, key: str, **values: Any) -> None:
    """Print the collect link of a row. It is no secret: anyone with it can submit, but not read."""
    from sealpipe.cli import batch_rows

    batch_rows.link(name, key, **values)


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database",), common=COMMON)
def rekey(name: str, **values: Any) -> None:
    """Seal a batch under a new data key, and forget the old ones.

    For a credential that leaked: take the batch over with a new one first. All or nothing: safe to
    kill, and to run again. Workers on PostgreSQL wait meanwhile; a SQLite file must have no run or
    worker.

    sealpipe batch rekey vendors-2026-q4
    """
    from sealpipe.cli import batch_rows

    batch_rows.rekey(name, **values)


@click.command(cls=CodeCommand)
@click.argument("name")
@options("batch", only=("database", "older_than"), common=COMMON)
def purge(name: str, **values: Any) -> None:
    """Remove a batch from the database, with the names and addresses of its rows.

    Every row must be over.

    Nothing is asked of the service. With --older-than, only if nothing has changed for that long.
    """
    from sealpipe.cli import batch_rows

    batch_rows.purge(name, **values)


COMMANDS = (list_, status, report, collect, remind, reissue, cancel, link, rekey, purge)
"""The commands of this module."""
