"""Reads from the database what `status` and `report` tell. The service is not asked."""

from __future__ import annotations

from collections.abc import Iterator

from sealpipe.batch.engine.advance import Engine
from sealpipe.batch.report.figures import RowFacts
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.states import State


def read_facts(engine: Engine, *, with_history: bool = False) -> Iterator[RowFacts]:
    """Yield each row of a batch, in no particular order."""
    for row in engine.store.list_rows(engine.batch, contents=True):
        content = RowContent.load(row)
        history = (
            [(event.at, event.content) for event in engine.store.read_history(row)]
            if with_history
            else ()
        )
        yield RowFacts(
            row.key or "",
            State(row.state),
            row.since,
            row.due_at,
            content.progress,
            row.generation,
            content.is_gone,
            history,
        )
