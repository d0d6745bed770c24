"""Settings of `pass`, the standard unix password manager."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from sealpipe.plugin.settings import PluginSettings


class PassSettings(PluginSettings):
    """`program` is pass, `store_dir` the folder of the entries (~/.password-store); `timeout` is in seconds."""

    program: str = "pass"
    store_dir: Path | None = None
    timeout: float = Field(30.0, gt=0, le=3600)

    file_only = frozenset({"program"})
    own_variables = {"store_dir": "PASSWORD_STORE_DIR"}  # noqa: RUF012 - a ClassVar of the base
