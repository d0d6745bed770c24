"""What happened to the rows of a batch, over all rows: part of a `BatchStore`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Values, check_types
from sealpipe.batch.database.keyring import BatchKeyring
from sealpipe.batch.database.records import SECOND, Batch, Event

LATENESS: Final = 60 * SECOND
"""For how long after its time an event may come to light, in microseconds: it has the time before
its transaction.
"""
_PAGE: Final = 500


class RowEvent(NamedTuple):
    """A line of the history of a row, which `number` identifies there."""

    row: str
    number: int
    event: Event


class History:
    """The histories of all rows of a batch."""

    def __init__(self, database: Database, keyring: BatchKeyring) -> None:
        self._database = database
        self._keyring = keyring

    def read_since(self, batch: Batch, moment: int) -> Iterator[RowEvent]:
        """Yield what happened after a moment, row by row. Other calls may be made meanwhile."""
        opened, row, number = self._keyring.get(batch.id), "", -1

        def load(values: Values) -> RowEvent:
            row, number, *_ = check_types(values, "tiib")
            return RowEvent(row, number, opened.load_event(row, values[1:]))

        while True:
            found = self._keyring.read(
                load,
                sql.READ_CHANGES,
                batch=batch.id,
                since=moment,
                row=row,
                number=number,
                limit=_PAGE,
            )
            yield from found
            if len(found) < _PAGE:
                return
            row, number, _ = found[-1]

    def count_changes(self, batch: Batch) -> int:
        """Return how often the rows of a batch were written; only a restored backup has fewer."""
        (number,) = check_types(self._database.read(sql.COUNT_CHANGES, batch=batch.id)[0], "i")
        return int(number)
