"""Which waiting rows a run looks at though their schedule says later: a person waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from sealpipe.batch.database.records import SECOND
from sealpipe.batch.engine.actions import find_row
from sealpipe.batch.engine.advance import DEFAULT_RATE, Engine, can_look
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.states import MINUTE, Progress, State

Extent = Literal["scheduled", "stale", "all"]
"""None but what is due, also those that were not looked at for a while, or all that wait."""
STALE_AGE: Final = 30 * SECOND
"""A look that is older is repeated for a person."""
_SHARE: Final = 10
"""Such looks take one of so many calls of the rate."""


class Looks(NamedTuple):
    """The ids of rows to look at, the longest unseen first; how many were left out."""

    rows: Sequence[str] = ()
    left: int = 0


def choose_looks(engine: Engine, only: Sequence[str], extent: Extent) -> Looks:
    """Choose the rows that are looked at now, of all or of those named. Those that are due are not
    among them.

    Raises UsageError for a key that the batch does not have.
    """
    if extent == "scheduled":
        return Looks()
    store, now = engine.store, engine.store.now()
    named = {find_row(engine, key).id for key in only}
    rows = store.list_rows(engine.batch, states=[State.WAITING, State.BLOCKED], contents=True)
    seen = {row.id: (row.due_at, RowContent.load(row).progress) for row in rows if can_look(row)}
    waiting = sorted(
        (_get_looked_at(progress), row_id)
        for row_id, (due_at, progress) in seen.items()
        if (not named or row_id in named) and (due_at is None or due_at > now)
    )
    if extent == "all":
        return Looks([row_id for _, row_id in waiting])
    stale = [row_id for looked_at, row_id in waiting if looked_at <= now - STALE_AGE]
    per_minute = store.rate.read().calls_per_minute or DEFAULT_RATE
    recent = sum(
        progress.looked_at != progress.delivered_at and _get_looked_at(progress) > now - MINUTE
        for _, progress in seen.values()
    )
    room = max(0, round(max(1, per_minute / _SHARE)) - recent)
    return Looks(stale[:room], len(stale[room:]))


def _get_looked_at(progress: Progress) -> int:
    return progress.looked_at or progress.delivered_at or 0
