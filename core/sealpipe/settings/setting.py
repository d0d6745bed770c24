"""One row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be set. `parse` turns text into the value and raises UsageError."""

    name: str
    help: str
    parse: Callable[[str], Any] = str
    default: str | None = None
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    flag: bool = False
    multiple: bool = False
    short: str = ""
    secret: bool = False
    """A secret has no option, is not read from the config file, and never shows in help."""

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def variable(self, command: str = "") -> str:
        """The environment's name for it: SEALPIPE_BASE_URL, SEALPIPE_SHARE_EXPIRES_IN."""
        return "_".join(part for part in ("SEALPIPE", command.replace("-", "_"), self.name) if part).upper()
