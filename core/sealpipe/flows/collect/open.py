"""Open submissions: each once, whatever the service repeats or drops between two reads.

Whatever a sealed box holds, nothing of it is in an error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from sealpipe.api.models import Submission
from sealpipe.errors import PayloadTooLargeError, WireError
from sealpipe.flows.collect.key import OpeningKey
from sealpipe.flows.collect.options import CollectJob
from sealpipe.flows.collect.result import Identity, OpenedSubmission, UnreadableSubmission
from sealpipe.flows.store.targets import make_plain_name
from sealpipe.flows.store.write import MisfitError, SinkWrite, merge_writes, select_values
from sealpipe.plugin import SinkField
from sealpipe.prompts import Prompt
from sealpipe.reference import Reference
from sealpipe.secret import Secret, as_secret
from sealpipe.values import format_time
from sealpipe.wire import fields, sealed_box
from sealpipe.wire.fields import Field


class SubmissionSet:
    """The submissions of a request, by what tells one from another."""

    def __init__(self, job: CollectJob, folder: Path | None, keys: Sequence[OpeningKey], tag: str) -> None:
        self._job, self._folder, self._keys, self._tag = job, folder, keys, tag
        self._seen: SubmissionsByIdentity = {}
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

    def select(self, identities: Collection[Identity]) -> list[OpenedSubmission]:
        """Those of these that can be used."""
        found = (self._seen[identity] for identity in identities)
        return [each for each in found if isinstance(each, OpenedSubmission)]

    def select_unusable(self, markers: Collection[str] = ()) -> list[Submission]:
        """The ciphertext of what cannot be used; with `markers`, of those that these stand for."""
        return [
            self._items[identity]
            for identity, each in self._seen.items()
            if (each.marker in markers if isinstance(each, OpenedSubmission) else not markers)
        ]


SubmissionsByIdentity = dict[Identity, OpenedSubmission | UnreadableSubmission]
"""What became of each submission, by its identity: what was opened once is not opened again."""


def open_new(items: Iterable[Submission], keys: Sequence[OpeningKey], tag: str, seen: SubmissionsByIdentity) -> None:
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
            found = tuple(_hide_field(field) for field in fields.load(payload))
        except (WireError, PayloadTooLargeError) as error:
            reason = f"it is no array of fields ({getattr(error, 'reason', 'too-large')})"
            break
        return OpenedSubmission(
            item.short_code, item.created_at, found, make_plain_name(item.short_code, item.data or "")
        )
    return UnreadableSubmission(item.short_code, item.created_at, reason)


def _hide_field(field: fields.Field) -> fields.Field:
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


MAX_FILES: Final = 1000
"""Fields of a submission that become files of a folder, at most."""


def plan_writes(job: CollectJob, received: OpenedSubmission, folder: Path | None) -> list[SinkWrite]:
    """What a submission puts where. Raises MisfitError where it does not answer what is taken of it; UsageError."""
    placeholders = {"submission": received.marker, "request": make_plain_name(job.short_code)}
    writes = []
    for target, mappings in job.mappings:
        sink_fields = select_values(target, mappings, received.fields)
        if sink_fields:
            writes.append(SinkWrite(target.fill(placeholders), tuple(sink_fields), target.mode, received.marker))
    if folder is not None:
        writes.append(_write_to_folder(folder, received, job.prompts))
    return merge_writes(writes)


def name_fields(fields: Sequence[Field], prompts: Sequence[Prompt] | None) -> list[str]:
    """A name of ours for each field: the id of the prompt that it answers first, else its number."""
    prompt_ids = {prompt.text: prompt.id for prompt in prompts or ()}
    return [prompt_ids.pop(field.key, f"field-{number}") for number, field in enumerate(fields, 1)]


def _write_to_folder(folder: Path, received: OpenedSubmission, prompts: Sequence[Prompt] | None) -> SinkWrite:
    if len(received.fields) > MAX_FILES:
        raise MisfitError(f"it has {len(received.fields)} fields, but a directory accepts at most {MAX_FILES}")
    names = name_fields(received.fields, prompts)
    rows = [
        {"file": name, "key": field.key, "type": field.type} for name, field in zip(names, received.fields, strict=True)
    ]
    created = None if received.created_at is None else format_time(received.created_at)
    index = {"schema": 1, "short_code": received.short_code, "created_at": created, "fields": rows}
    stored = [SinkField(name, _secret(field)) for name, field in zip(names, received.fields, strict=True)]
    stored.append(SinkField("index.json", Secret(json.dumps(index) + "\n")))
    return SinkWrite(Reference("dir", str(folder / received.marker)), tuple(stored), "create", received.marker)


def _secret(field: Field) -> Secret:
    return field.value if isinstance(field.value, Secret) else Secret(field.value)
