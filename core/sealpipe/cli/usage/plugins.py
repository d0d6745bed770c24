"""`sealpipe plugins`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import OFFLINE, Command, options


@click.command(cls=Command)
@options("plugins", common=OFFLINE)
def plugins(**values: Any) -> None:
    """List installed plugins: built-in ones, and those of other distributions.

    Imports no backend and makes no connection; test one with `sealpipe doctor NAME`.
    """
    from sealpipe.cli import plugins

    plugins.plugins(**values)
