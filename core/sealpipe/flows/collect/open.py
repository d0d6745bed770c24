"""Open submissions: each once, whatever the service repeats or drops between two reads.

Whatever a sealed box holds, nothing of it is in an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from sealpipe.api.models import Submission
from sealpipe.errors import PayloadTooLargeError, WireError
from sealpipe.flows.collect.key import OpeningKey
from sealpipe.flows.collect.options import CollectJob
from sealpipe.flows.collect.result import Identity, OpenedSubmission, UnreadableSubmission
from sealpipe.flows.collect.store import plan_writes
from sealpipe.flows.store.targets import make_plain_name
from sealpipe.flows.store.write import MisfitError
from sealpipe.secret import as_secret
from sealpipe.wire import fields, sealed_box


class SubmissionSet:
    """The submissions of a request, by what tells one from another."""

    def __init__(self, job: CollectJob, folder: Path | None, keys: Sequence[OpeningKey], tag: str) -> None:
        self._job, self._folder, self._keys, self._tag = job, folder, keys, tag
        self._seen: Seen = {}
        self._items: dict[Identity, Submission] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, items: Iterable[Submission]) -> None:
        """Open what is new, and see whether it answers what is taken of it. Takes its time."""
        new = {item.identity: item for item in items if item.identity not in self._items}
        self._items |= new
        open_new(new.values(), self._keys, self._tag, self._seen)
        for identity in new:
            each = self._seen[identity]
            if isinstance(each, OpenedSubmission):
                try:
                    plan_writes(self._job, each, self._folder)
                except MisfitError as misfit:
                    self._seen[identity] = UnreadableSubmission(each.short_code, each.created_at, str(misfit))

    @property
    def known(self) -> frozenset[Identity]:
        """Every submission."""
        return frozenset(self._items)

    @property
    def usable(self) -> list[OpenedSubmission]:
        """What can be used, in the service's order."""
        return [each for each in self._seen.values() if isinstance(each, OpenedSubmission)]

    @property
    def unreadable(self) -> tuple[UnreadableSubmission, ...]:
        """What cannot: because it does not open, or does not answer what is taken of it."""
        return tuple(each for each in self._seen.values() if isinstance(each, UnreadableSubmission))

    def of(self, identities: Collection[Identity]) -> list[OpenedSubmission]:
        """Those of these that can be used."""
        found = (self._seen[identity] for identity in identities)
        return [each for each in found if isinstance(each, OpenedSubmission)]

    def locked_up(self, markers: Collection[str] = ()) -> list[Submission]:
        """The ciphertext of what cannot be used; with `markers`, of those that these stand for."""
        return [
            self._items[identity]
            for identity, each in self._seen.items()
            if (each.marker in markers if isinstance(each, OpenedSubmission) else not markers)
        ]


Seen = dict[Identity, OpenedSubmission | UnreadableSubmission]
"""What became of each submission, by its identity: what was opened once is not opened again."""


def open_new(items: Iterable[Submission], keys: Sequence[OpeningKey], tag: str, seen: Seen) -> None:
    """Open what is new. A submission that is there twice is one."""
    for item in items:
        if item.identity not in seen:
            seen[item.identity] = open_submission(item, keys, tag)


def open_submission(item: Submission, keys: Sequence[OpeningKey], tag: str) -> OpenedSubmission | UnreadableSubmission:
    """One submission, by the first key that opens it."""
    reason = "it has no content"
    for each in keys if item.data else ():
        try:
            payload = sealed_box.open(each.pair, item.data or "", tag=tag)
        except WireError as error:
            reason = f"it cannot be decrypted ({error.reason})"
            continue
        try:
            found = tuple(_close_field(field) for field in fields.load(payload))
        except (WireError, PayloadTooLargeError) as error:
            reason = f"it is no array of fields ({getattr(error, 'reason', 'too-large')})"
            break
        return OpenedSubmission(
            item.short_code, item.created_at, found, make_plain_name(item.short_code, item.data or "")
        )
    return UnreadableSubmission(item.short_code, item.created_at, reason)


def _close_field(field: fields.Field) -> fields.Field:
    """The same, its value closed: no traceback's locals show it."""
    return fields.Field(
        field.key,
        as_secret(field.value),
        field.type,
        language=field.language,
        filename=field.filename,
        extra=field.extra,
        order=field.order,
    )
