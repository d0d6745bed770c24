"""`sealpipe requests link | remind`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, options

_LOCAL = ("base_url", "link_base_url", "state_dir", "output")
"""Global options of `requests link`, which makes no connection."""


@click.command(cls=CodeCommand)
@click.argument("request", metavar="[CODE|RECEIPT]", required=False)
@options("link", common=_LOCAL)
def link(request: str | None, **values: Any) -> None:
    """Print a request's collect link. Makes no connection.

    Give its receipt; on the machine that created it, its code or its --name will do.
    """
    from sealpipe.cli import requests_link

    requests_link.link(request, **values)


@click.command(cls=CodeCommand)
@click.argument("request", metavar="[CODE|RECEIPT]", required=False)
@options("remind", common=())
@options("", common=COMMON)
def remind(request: str | None, **values: Any) -> None:
    """Send a request's collect link once more, unless somebody has submitted.

    Give its receipt; on the machine that created it, its code or its --name will do. Sends nothing
    if there are submissions (exit code 0) or the request has expired (exit code 16).

    sealpipe requests remind acme.json --send email:ann@example.com
    """
    from sealpipe.cli import requests_link

    requests_link.remind(request, **values)
