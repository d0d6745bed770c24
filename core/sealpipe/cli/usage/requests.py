"""`sealpipe requests`, and its `show`, `submissions` and `purge`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, SettingsGroup, options
from sealpipe.cli.usage.expire import expire_requests
from sealpipe.cli.usage.requests_link import link, remind
from sealpipe.cli.usage.requests_list import list_requests


@click.group(cls=SettingsGroup)
def requests() -> None:
    """List, show, remind of, expire and purge requests, and list submissions.

    `sealpipe collect` decrypts them.
    """


for _command in (list_requests, link, remind, expire_requests):
    requests.add_command(_command)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def show(code: str, **values: Any) -> None:
    """Show what the service knows about a request. Changes nothing."""
    from sealpipe.cli import requests

    requests.show(code, **values)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def submissions(code: str, **values: Any) -> None:
    """List the submissions to a request: code, time and size of each. Decrypts nothing.

    --output json includes the ciphertext.
    """
    from sealpipe.cli import requests

    requests.submissions(code, **values)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("purge", common=())
@options("", common=COMMON)
def purge(code: str, confirm: str | None, **values: Any) -> None:
    """Delete a request and all its submissions from the service, for good. Needs --confirm CODE.

    Stores the ciphertext of every submission in the state directory.
    """
    from sealpipe.cli import requests

    requests.purge(code, confirm, **values)
