"""`sealpipe share`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, SettingType, options
from sealpipe.command_settings import COMMANDS

_FIELD = next(each for each in COMMANDS["share"] if each.name == "field")


@click.command(
    cls=Command,
    epilog="References: env:NAME, file:PATH, dotenv:PATH#KEY, stdin:, prompt:TEXT (asks you), "
    "gen:password, text:TEXT (not for secrets).",
)
@options("share", common=COMMON)
@click.argument("references", nargs=-1, type=SettingType(_FIELD), metavar="[REF]...")
@click.pass_context
def share(ctx: click.Context, /, **values: Any) -> None:
    """Encrypt secrets and create a share link.

    Prints the link on stdout; anyone with the link can open the share. In CI, that needs --print.
    Name fields by reference, with -f or without:

    sealpipe share env:DB_PASSWORD 'User=text:deploy' --expires-in 24h
    """
    from sealpipe.cli import share

    share.share(ctx, **values)
