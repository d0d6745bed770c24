"""`sealpipe stats`, and `sealpipe tools list | call`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, Command, SettingsGroup, options


@click.command(cls=Command)
@options("", common=COMMON)
def stats(**values: Any) -> None:
    """Show how many shares exist, and how often they were viewed on each of the last 14 days.

    Draws bars on a terminal; elsewhere prints a line per day: date, tab, views.
    """
    from sealpipe.cli import account

    account.stats(**values)


@click.group(cls=SettingsGroup)
def tools() -> None:
    """List and call the tools of the hosted MCP endpoint."""


@tools.command("list", cls=Command)
@options("", common=COMMON)
def list_tools(**values: Any) -> None:
    """List the service's tools: name, tab, description. --output json includes their arguments."""
    from sealpipe.cli import account

    account.list_tools(**values)


@tools.command(cls=CodeCommand)
@click.argument("name", metavar="TOOL")
@options("tools", common=COMMON)
def call(name: str, **values: Any) -> None:
    """Call a tool exactly once, without retries.

    Pass its arguments by reference, as the tool's schema describes them:

    sealpipe tools call list_shares --param limit=text:5
    """
    from sealpipe.cli import account

    account.call(name, **values)
