"""`sealpipe share`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, options


class _ShareCommand(Command):
    unexpected_remedy = (
        "name each field with -f, such as -f env:DB_PASSWORD, and pass every value with its "
        "option: see `sealpipe share --help`"
    )


@click.command(
    cls=_ShareCommand,
    epilog="References: env:NAME, file:PATH, dotenv:PATH#KEY, stdin:, prompt:TEXT (asks you), "
    "gen:password, text:TEXT (not for secrets).",
)
@options("share", common=COMMON)
@click.pass_context
def share(ctx: click.Context, /, **values: Any) -> None:
    """Encrypt secrets and create a share link.

    Prints the link on stdout; anyone with the link can open the share. In CI, that needs --print.
    Name fields by reference:

    sealpipe share -f env:DB_PASSWORD -f 'User=text:deploy' --expires-in 24h
    """
    from sealpipe.cli import share

    share.share(ctx, **values)
