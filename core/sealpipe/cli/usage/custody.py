"""`sealpipe custody public-key`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, SettingsGroup, options


@click.group(cls=SettingsGroup)
def custody() -> None:
    """Print the credential's custody public key."""


@custody.command("public-key", cls=Command)
@options("", common=("api_key_file", "service_tag", "output"))
def public_key(**values: Any) -> None:
    """Print the custody public key: base64url of the uncompressed P-256 point. Makes no connection.

    The service's app registers this key; compare the two by the fingerprint in --output json.
    """
    from sealpipe.cli import custody

    custody.public_key(**values)
