"""Finds rows whose values would overwrite each other in the same place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sealpipe.batch.file.rows import Row
from sealpipe.reference import Key, Reference
from sealpipe.sinks.targets import SinkTarget

EVERY_KEY: Final = "*"
"""Stands for keys that are not known before the sources are read."""


class TargetKeys(NamedTuple):
    """A target of a row, filled in, and the keys that it writes there."""

    target: SinkTarget
    keys: tuple[str, ...]


class _Place:
    """Who writes to a place: without `merge` only one row may, otherwise each key has one row."""

    def __init__(self, first: Row) -> None:
        self.first = first
        self.owner: Row | None = None
        self.rows: dict[str, Row] = {}


class PlaceRegister:
    """The places of all rows so far."""

    def __init__(self) -> None:
        self._places: dict[Reference, _Place] = {}

    def claim(self, row: Row, targets: Iterable[TargetKeys]) -> Row | None:
        """Register the targets of a row.

        Return an earlier row that would be stored in the same place.
        """
        found: Row | None = None
        for target, keys in targets:
            if target.placeholders:
                continue  # the code of a submission or a request: no two are the same
            place = self._places.setdefault(_normalize(target), _Place(row))
            names = {key.casefold() for key in keys}
            others = [place.owner, *(place.rows.get(name) for name in (*names, EVERY_KEY))]
            if (target.mode != "merge" or EVERY_KEY in names) and place.first is not row:
                others.append(place.first)
            # A row's own targets are compared when its options are made.
            found = found or next(
                (each for each in others if each is not None and each is not row), None
            )
            if target.mode != "merge":
                place.owner = place.owner or row
            for name in names:
                place.rows.setdefault(name, row)
        return found


def read_keys(target: SinkTarget) -> TargetKeys:
    """Return the keys of a target of a share, as far as it names them: else the fields decide."""
    items = target.ref.selector or (None,)
    return TargetKeys(
        target,
        tuple((item.label or item.name) if isinstance(item, Key) else EVERY_KEY for item in items),
    )


def _normalize(target: SinkTarget) -> Reference:
    """Return the place in one spelling: some stores ignore case."""
    ref = target.fill({})
    return Reference(ref.name, ref.body.casefold(), tuple(sorted(ref.params)))
