"""CI systems: what the job around us offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from sealpipe.plugin.context import Context
from sealpipe.secret import Secret

Level = Literal["error", "warning", "notice"]
"""How much a line for people matters."""


class Run(NamedTuple):
    """Which run this is, and who started it."""

    ci: str
    id: str
    actor: str = ""
    url: str = ""


class CI(ABC):
    """A CI system, found by its descriptor's `sign`. Nothing of this ever prints a value to stdout."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def run(self) -> Run:
        """Which run this is."""

    @abstractmethod
    def mask(self, values: Iterable[Secret]) -> None:
        """Have the system hide these values in its log from now on, where it can."""

    @abstractmethod
    def set_output(self, name: str, value: str) -> None:
        """Hand a value to later steps. UnsupportedError where there is no way."""

    @abstractmethod
    def summary(self, markdown: str) -> None:
        """Add to the run's summary, where there is one."""

    def annotate(self, level: Level, message: str) -> None:  # noqa: B027 - most have no such place
        """Show a line where people look first, beside the log. It may hold anybody's text: write it harmlessly."""

    @abstractmethod
    def oidc_token(self, audience: str | None = None) -> Secret:
        """A token that proves which run this is. NotConfiguredError says what the job lacks for it."""
