"""Sinks: where results are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sealpipe.errors import WriteConflictError
from sealpipe.plugin.context import Context
from sealpipe.plugin.source import Health, Locator
from sealpipe.secret import Secret

Mode = Literal["create", "replace", "merge"]
"""create: nothing may be there yet; replace: whatever is there goes; merge: other keys stay."""


class Stored(NamedTuple):
    """One value to store, under a key of our own choosing (never of a submitter's).

    The key is empty where the target names none: then the value is the whole document, and the only one. A sink
    whose targets hold one value each takes one value with any key.
    """

    key: str
    value: Secret


class Receipt(NamedTuple):
    """What a sink confirms once it has read back what it wrote. `known` is False where it could not.

    `already` tells that all of it was there before, and nothing was written.
    """

    locator: Locator
    version: str = ""
    known: bool = True
    already: bool = False


class Sink(ABC):
    """Something that values are stored in. Called in threads; errors as a source's.

    A sink that is killed at any moment, and called again with the same arguments, ends in the same state as one
    that was not.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def describe(self, locator: Locator, mode: Mode) -> str:
        """What `put` would do, in words, without asking anybody. ReferenceValueError for a target that cannot be."""

    @abstractmethod
    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        """Store, read back, and keep `marker` beside it where the backend can.

        The marker stands for one submission: up to 80 of A-Z a-z 0-9 . _ -, the same on every machine. With it, the
        same submission again stores nothing twice, and what was changed since is left as it is (`missing` decides).
        Where the backend has no place for it, equal content does. WriteConflictError where `mode` does not allow what
        is there; UnknownOutcomeError where it cannot be told whether it was stored. ReferenceValueError for a key that
        cannot be one.
        """

    def check(self) -> Health:
        """Whether it can be used now, found out without changing anything."""
        return Health(ok=True)

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """As a source's."""


def missing(
    there: Mapping[str, bytes] | None, wanted: Mapping[str, bytes], *, mode: Mode, marked: bool
) -> dict[str, bytes] | None:
    """What a place must hold from now on; None where nothing has to be written. Raises WriteConflictError.

    `there` is what it holds (None: it does not exist), `marked` whether it carries this submission's marker: then
    its keys are ours, and their values may have been rotated since.
    """
    if there is None:
        return dict(wanted)
    if marked and wanted.keys() <= there.keys():
        return None
    after = {**there, **wanted} if mode == "merge" else dict(wanted)
    if after == there:
        return None
    if mode == "create":
        raise WriteConflictError(
            "something else is stored there already",
            remedy="name another place, or say that it may change: ?mode=merge or ?mode=replace in the target",
        )
    return after
