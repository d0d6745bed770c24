"""`sealpipe run`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, options

_COMMON = ("ca_file", "deadline", "output")


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@options("run", common=_COMMON)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND ...")
@click.pass_context
def run(ctx: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Run a command with secrets in its environment.

    Reads every secret before the command starts, and exits with its exit code. Replaces the secrets
    in its output by ***, in the usual encodings, too; --no-redact leaves the output alone. Needs no
    credential of the service:

    sealpipe run -e DB_PASSWORD=vault:secret/app#password -- ./migrate --verbose
    """
    from sealpipe.cli import run_command

    run_command.run(ctx, command, **values)
