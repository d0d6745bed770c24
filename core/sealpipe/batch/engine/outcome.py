"""What somebody asks for by hand, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from sealpipe.batch.database.sealing import Members
from sealpipe.batch.engine.advance import Change

Verb = Literal["collect", "remind", "reissue", "cancel"]
PARTICIPLES: Final[Mapping[Verb, str]] = {
    "collect": "collected",
    "remind": "reminded",
    "reissue": "reissued",
    "cancel": "cancelled",
}


class Outcome(NamedTuple):
    """What became of a row that somebody asked something for.

    `problem` says why it is not done; empty if it is. `state` is the row's state then, empty if
    that is not known.
    """

    key: str
    changes: Sequence[Change] = ()
    problem: str = ""
    remedy: str = ""
    state: str = ""

    def to_members(self) -> Members:
        """Return it as JSON members."""
        return {**self._asdict(), "changes": [list(change) for change in self.changes]}

    @staticmethod
    def load(members: Mapping[str, Any]) -> Outcome:
        """Restore what `to_members` returned."""
        changes = tuple(Change(*each) for each in members["changes"])
        return Outcome(**{**members, "changes": changes})
