"""Sinks: where results are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from sealpipe.plugin.context import Context
from sealpipe.plugin.document import Health, Locator
from sealpipe.secret import Secret

Mode = Literal["create", "replace", "merge"]
"""create: nothing may be there yet; replace: whatever is there goes; merge: other keys stay."""


class Stored(NamedTuple):
    """One value to store, under a key of our own choosing (never of a submitter's)."""

    key: str
    value: Secret


class Receipt(NamedTuple):
    """What a sink confirms once it has read back what it wrote. `known` is False where it could not."""

    locator: Locator
    version: str = ""
    known: bool = True


class Sink(ABC):
    """Something that values are stored in. Called in threads; errors as a source's."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def describe(self, locator: Locator, mode: Mode) -> str:
        """What `put` would do, in words, without asking anybody. BadReference for a target that cannot be."""

    @abstractmethod
    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        """Store, read back, and keep `marker` (a submission's code) beside it where the backend can.

        The same marker again stores nothing twice. Conflict where `mode` does not allow what is there.
        """

    def check(self) -> Health:
        """Whether it can be used now, found out without changing anything."""
        return Health(ok=True)

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """As a source's."""
