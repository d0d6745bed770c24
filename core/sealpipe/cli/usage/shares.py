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
    """List active shares, newest first; or those that have ended (--status expired)."""
    from sealpipe.cli import shares

    shares.list_(**values)


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def show(code: str, **values: Any) -> None:
    """Show what the service knows about a share. Uses no view."""
    from sealpipe.cli import shares

    shares.show(code, **values)


@shares.command(cls=CodeCommand)
@click.argument("code", metavar="CODE|RECEIPT")
@options("wait", common=COMMON)
def wait(code: str, **values: Any) -> None:
    """Wait until a share was opened, or has ended.

    Exits with 0 once it has come to that, and with 15 when time is up. Asks the access log where
    the service has one. Elsewhere only a share with one view and no passcode tells that it was
    opened, by being used up: sealpipe knows it by its receipt, or because this machine created it
    in a CI job or with --name.

    sealpipe shares wait share.json --until opened --for 24h --else expire
    """
    from sealpipe.cli import shares_wait

    shares_wait.wait(code, **values)


shares.add_command(expire_shares)


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("log", common=COMMON)
def log(code: str, **values: Any) -> None:
    """Show who opened a share, or tried to.

    Not every service has this log. If this one has none, the command says so on stderr.
    """
    from sealpipe.cli import shares

    shares.log(code, **values)
