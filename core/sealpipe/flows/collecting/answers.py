"""All that was submitted to one request: each opened once, whatever the service repeats or drops between two reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from sealpipe.api.models import Submission
from sealpipe.flows.collecting.keys import InHand
from sealpipe.flows.collecting.opening import Seen, open_all
from sealpipe.flows.collecting.parcels import parcels
from sealpipe.flows.collecting.planning import Job
from sealpipe.flows.collecting.result import Identity, Received, Unreadable
from sealpipe.flows.storing.taking import MisfitError


class Answers:
    """The submissions of a request, by what tells one from another."""

    def __init__(self, job: Job, folder: Path | None, keys: Sequence[InHand], tag: str) -> None:
        self._job, self._folder, self._keys, self._tag = job, folder, keys, tag
        self._seen: Seen = {}
        self._items: dict[Identity, Submission] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, items: Iterable[Submission]) -> None:
        """Open what is new, and see whether it answers what is taken of it. Takes its time."""
        new = {item.identity: item for item in items if item.identity not in self._items}
        self._items |= new
        open_all(new.values(), self._keys, self._tag, self._seen)
        for identity in new:
            each = self._seen[identity]
            if isinstance(each, Received):
                try:
                    parcels(self._job, each, self._folder)
                except MisfitError as misfit:
                    self._seen[identity] = Unreadable(each.short_code, each.created_at, str(misfit))

    @property
    def known(self) -> frozenset[Identity]:
        """Every submission."""
        return frozenset(self._items)

    @property
    def usable(self) -> list[Received]:
        """What can be used, in the service's order."""
        return [each for each in self._seen.values() if isinstance(each, Received)]

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """What cannot: because it does not open, or does not answer what is taken of it."""
        return tuple(each for each in self._seen.values() if isinstance(each, Unreadable))

    def of(self, identities: Collection[Identity]) -> list[Received]:
        """Those of these that can be used."""
        found = (self._seen[identity] for identity in identities)
        return [each for each in found if isinstance(each, Received)]

    def locked_up(self, markers: Collection[str] = ()) -> list[Submission]:
        """The ciphertext of what cannot be used; with `markers`, of those that these stand for."""
        return [
            self._items[identity]
            for identity, each in self._seen.items()
            if (each.marker in markers if isinstance(each, Received) else not markers)
        ]
