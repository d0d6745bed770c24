"""`sealpipe audit verify`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import OFFLINE, Command, SettingsGroup, options


@click.group(cls=SettingsGroup)
def audit() -> None:
    """Verify an audit log, or send it to its webhook."""


@audit.command(cls=Command)
@click.argument("log", metavar="FILE")
@options("audit", common=OFFLINE)
def verify(log: str, head: str | None, key: str | None, *, collected: bool, **values: Any) -> None:
    """Verify the chain of an audit log, from the first line to the last. Makes no connection.

    Reports every changed, removed or added line; with --head (which each command that writes the
    log prints on stderr), also lines cut off at the end. The key comes from the config that names
    this log, or from --key.

    With --collected, FILE has the lines of many machines: each chain is verified by itself, and
    printed with its machine, so that you see which machines are there.
    """
    from sealpipe.cli import audit

    audit.verify(log, head, key, collected=collected, **values)


@audit.command(cls=Command)
@options("audit", only=(), common=("ca_file", "deadline", "output"))
def send(**values: Any) -> None:
    """Send the lines of this machine's audit logs that their webhooks do not have yet.

    Every command that writes a log does this, too. Use it before a log is rotated, at the end of a
    CI job, and after the webhook was down. Exit code 14 if the webhook does not accept all.
    """
    from sealpipe.cli import audit

    audit.send(**values)
