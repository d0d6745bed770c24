"""`sealpipe unseal`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, options

_COMMON = ("api_key_file", "service_tag", "ca_file", "output")


@click.command(cls=Command)
@click.argument("sealed", metavar="[SEALED]", required=False, envvar="SEALPIPE_SEALED_LINK")
@options("unseal", common=_COMMON)
def unseal(sealed: str | None, **values: Any) -> None:
    """Open a link that `share --seal-link` sealed, with the same credential. Makes no connection.

    SEALED is the sealed link, or - for stdin. Without it and --sealed-file, reads
    SEALPIPE_SEALED_LINK. It needs the credential, and the text given to --bind, if any. The actions
    and templates bind it to their run: github:OWNER/REPO:RUN_ID, gitlab:PROJECT_PATH:PIPELINE_ID.
    In CI, printing the link on stdout needs --print; it is masked first if possible.
    """
    from sealpipe.cli import unseal

    unseal.unseal(sealed, **values)
