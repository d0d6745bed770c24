"""Settings of KeePass."""

from __future__ import annotations

from pathlib import Path

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


class KeepassSettings(PluginSettings):
    """A database, and what opens it: its password, its key file, or both."""

    database: Path
    password: Secret | None = None
    key_file: Path | None = None
