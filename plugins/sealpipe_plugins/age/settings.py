"""Settings of age."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings

SSH_TYPES: Final = ("ssh-ed25519", "ssh-rsa")
"""How SSH's public keys begin, of the kinds that age can use."""


def split_recipients(value: object) -> object:
    """Split recipients that are separated by white space; an SSH key is two words."""
    if not isinstance(value, str):
        return value
    words = iter(value.split())
    return tuple(f"{word} {next(words, '')}" if word in SSH_TYPES else word for word in words)


class AgeSettings(PluginSettings):
    """The keys of this machine; each file of keys is in the format of the program `age`.

    `identity` is the content of an identity file. `recipients` is a list, or text separated by
    white space.
    """

    identity: Secret | None = None
    identity_file: Path | None = None
    recipients: Annotated[tuple[str, ...], BeforeValidator(split_recipients)] = ()
    recipients_file: Path | None = None

    def has_recipients(self) -> bool:
        """Return whether any recipients are configured."""
        return bool(self.recipients) or self.recipients_file is not None
