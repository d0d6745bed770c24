"""`sealpipe audit verify`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import OFFLINE, Command, SettingsGroup, options


@click.group(cls=SettingsGroup)
def audit() -> None:
    """Verify an audit log."""


@audit.command(cls=Command)
@click.argument("log", metavar="FILE")
@options("audit", common=OFFLINE)
def verify(log: str, head: str | None, key: str | None, **values: Any) -> None:
    """Verify the chain of an audit log, from the first line to the last. Makes no connection.

    Reports every changed, removed or added line; with --head (which each command that writes the
    log prints on stderr), also lines cut off at the end. The key comes from the config that names
    this log, or from --key.
    """
    from sealpipe.cli import audit

    audit.verify(log, head, key, **values)
