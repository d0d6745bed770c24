"""`sealpipe collect`: options and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, options


@click.command(cls=CodeCommand)
@click.argument("requests", nargs=-1, required=True, metavar="CODE|LINK|RECEIPT...")
@options("collect", common=COMMON)
def collect(requests: Sequence[str], **values: Any) -> None:
    """Decrypt submissions and store them. Safe to run again, on any machine.

    An argument that contains a dot or a slash is a receipt file; any other is a short code (write
    code:WORD if that is ambiguous) or a collect link. Without --to or --dir, prints the values on
    stdout; in CI, that needs --print. Senders are not authenticated: anyone with the link can
    submit.

    sealpipe collect acme.json --wait 15m --to 'vault:secret/vendor/acme#password=Staging password'
    """
    from sealpipe.cli import collect

    collect.collect(requests, **values)
