"""From an opened submission to what goes into each place. Pure. Names are ours; only values are the submitter's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sealpipe.flows.collect.options import CollectJob
from sealpipe.flows.collect.result import OpenedSubmission
from sealpipe.flows.store.targets import make_plain_name
from sealpipe.flows.store.write import MisfitError, SinkWrite, merge_writes, select_values
from sealpipe.plugin import Stored
from sealpipe.prompts import Prompt
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.times import format_time
from sealpipe.wire.field import Field

MOST_FILES: Final = 1000
"""Fields of a submission that become files of a folder, at most."""


def plan_writes(job: CollectJob, received: OpenedSubmission, folder: Path | None) -> list[SinkWrite]:
    """What a submission puts where. Raises MisfitError where it does not answer what is taken of it; UsageError."""
    places = {"submission": received.marker, "request": make_plain_name(job.short_code)}
    found = []
    for target, picks in job.takes:
        stored = select_values(target, picks, received.fields)
        if stored:
            found.append(SinkWrite(target.filled(places), tuple(stored), target.mode, received.marker))
    if folder is not None:
        found.append(_write_to_folder(folder, received, job.prompts))
    return merge_writes(found)


def name_fields(fields: Sequence[Field], prompts: Sequence[Prompt] | None) -> list[str]:
    """A name of ours for each field: the id of the prompt that it answers first, else its number."""
    ids = {prompt.text: prompt.id for prompt in prompts or ()}
    return [ids.pop(field.key, f"field-{number}") for number, field in enumerate(fields, 1)]


def _write_to_folder(folder: Path, received: OpenedSubmission, prompts: Sequence[Prompt] | None) -> SinkWrite:
    if len(received.fields) > MOST_FILES:
        raise MisfitError(f"it has {len(received.fields)} fields, and a folder takes {MOST_FILES}")
    names = name_fields(received.fields, prompts)
    rows = [
        {"file": name, "key": field.key, "type": field.type} for name, field in zip(names, received.fields, strict=True)
    ]
    created = None if received.created_at is None else format_time(received.created_at)
    index = {"schema": 1, "short_code": received.short_code, "created_at": created, "fields": rows}
    stored = [Stored(name, _secret(field)) for name, field in zip(names, received.fields, strict=True)]
    stored.append(Stored("index.json", Secret(json.dumps(index) + "\n")))
    return SinkWrite(Reference("dir", str(folder / received.marker)), tuple(stored), "create", received.marker)


def _secret(field: Field) -> Secret:
    return field.value if isinstance(field.value, Secret) else Secret(field.value)
