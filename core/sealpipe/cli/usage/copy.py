"""`sealpipe copy`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, SettingType, options
from sealpipe.command_settings import COMMANDS

_COMMON = ("state_dir", "ca_file", "deadline", "output")
_FIELD = next(each for each in COMMANDS["share"] if each.name == "field")


@click.command(cls=Command)
@click.argument(
    "references", nargs=-1, required=True, type=SettingType(_FIELD), metavar="[LABEL=]REF..."
)
@options("copy", common=_COMMON)
def copy(**values: Any) -> None:
    """Copy secrets from store to store, or rotate one in all its places.

    Reads every value, then writes one target after the other, and reads each back. Safe to run
    again: a rerun writes what is missing, with the same new value. Needs no credential of the
    service.

    sealpipe copy vault:secret/app#password --to k8s:prod/app#password

    sealpipe copy Password=gen:password --mode merge --to vault:secret/app#password=Password --to
    k8s:prod/app#password=Password --to postgres-role:app
    """
    from sealpipe.cli import copy

    copy.copy(**values)
