"""`sealpipe request`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, options


class _RequestCommand(Command):
    unexpected_remedy = (
        "write each prompt with -a, such as -a 'Staging password', and pass every value with its "
        "option: see `sealpipe request --help`"
    )


@click.command(cls=_RequestCommand)
@options("request", common=COMMON)
@click.pass_context
def request(ctx: click.Context, /, **values: Any) -> None:
    """Create a collect link to ask someone for secrets.

    The service never has the key that opens them.

    Prints the collect link on stdout; anyone with the link can submit, but not read. A prompt that
    does not end in the :TYPE of a field asks for a password.

    sealpipe request -a 'Staging password' -a 'user=User name:text' --receipt acme.json
    """
    from sealpipe.cli import request

    request.request(ctx, **values)
