"""`sealpipe custody`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, SettingsGroup, options


def _run(function: str, **values: Any) -> None:
    from sealpipe.cli import custody

    getattr(custody, function)(**values)


@click.group(cls=SettingsGroup)
def custody() -> None:
    """Make a custody secret; print the credential's custody public key."""


@custody.command("public-key", cls=Command)
@options("", common=("api_key_file", "service_tag", "output"))
def public_key(**values: Any) -> None:
    """Print the custody public key: base64url of the uncompressed P-256 point. Makes no connection.

    The service's app registers this key; compare the two by the fingerprint in --output json.
    """
    _run("public_key", **values)


@custody.command(cls=Command)
@options("custody", common=("service_tag", "output"))
def new(**values: Any) -> None:
    """Make a custody secret and print it, and its public key on the next line. Makes no connection.

    The service's operator registers the public key: `sealpipe server key create
    --custody-public-key`. Its credential has two parts: append a dot and this secret.
    """
    _run("new", **values)
