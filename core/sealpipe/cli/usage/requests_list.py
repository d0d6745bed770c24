"""`sealpipe requests list`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, options


@click.command("list", cls=Command)
@options("requests", common=COMMON)
def list_requests(status: str, sealed_to: str | None, **values: Any) -> None:
    """List active requests, newest first.

    KEY is whose key each is sealed to: this credential's, the previous one's, or another.
    --sealed-to previous lists all requests that still need the previous key, and exits with 15 if
    any remain.
    """
    from sealpipe.cli import requests_list

    requests_list.list_requests(status, sealed_to, **values)
