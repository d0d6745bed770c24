"""`sealpipe read`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, options

_COMMON = ("ca_file", "deadline", "output")


@click.command(cls=Command)
@click.argument("reference", metavar="REF")
@options("read", common=_COMMON)
def read(reference: str, **values: Any) -> None:
    """Print one value, byte for byte, without a newline at its end.

    In CI, that needs --print; the value is masked first if possible. Needs no credential of the
    service.
    """
    from sealpipe.cli import read

    read.read(reference, **values)
