"""`sealpipe webhooks verify`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, SettingsGroup, options


@click.group(cls=SettingsGroup)
def webhooks() -> None:
    """Verify the signature of the service's webhooks."""


@webhooks.command(cls=Command)
@options("webhooks", common=("ca_file", "deadline", "output"))
def verify(**values: Any) -> None:
    """Verify a webhook: its raw body on stdin, its signature by --signature or --headers.

    Makes no connection.

    Prints when the service signed it. A webhook that is not authentic, or was not signed within 300
    seconds of now, exits with 13.

    sealpipe webhooks verify --secret-from env:WEBHOOK_SECRET --signature
    env:HTTP_X_SERVICE_SIGNATURE < body
    """
    from sealpipe.cli import webhooks

    webhooks.verify(**values)
