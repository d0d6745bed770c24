"""`sealpipe shares`, and its `list`, `show` and `log`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, Command, SettingsGroup, options
from sealpipe.cli.usage.expire import expire_shares


@click.group(cls=SettingsGroup)
def shares() -> None:
    """List, show and expire shares, and show who opened one.

    The service only has metadata: it cannot read a share.
    """


@shares.command("list", cls=Command)
@options("shares", common=COMMON)
def list_(**values: Any) -> None:
    """List active shares, newest first."""
    from sealpipe.cli import shares

    shares.list_(**values)


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def show(code: str, **values: Any) -> None:
    """Show what the service knows about a share. Uses no view."""
    from sealpipe.cli import shares

    shares.show(code, **values)


shares.add_command(expire_shares)


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("log", common=COMMON)
def log(code: str, **values: Any) -> None:
    """Show who opened a share, or tried to.

    Not every service has this log; without it, the command prints nothing.
    """
    from sealpipe.cli import shares

    shares.log(code, **values)
