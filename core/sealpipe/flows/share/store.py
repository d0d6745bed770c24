"""`share --also-to`: store a share's fields before it is posted, so that a new secret reaches both store and person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sealpipe.errors import Note, ReferenceValueError, SealpipeError, UnknownOutcomeError
from sealpipe.flows import Do, Flow
from sealpipe.flows.session import Session
from sealpipe.flows.store import SHARE, SinkTarget, escape_name, map_keys, parse_targets
from sealpipe.flows.store.write import (
    MisfitError,
    SinkWrite,
    describe_writes,
    merge_writes,
    select_values,
    write_to_sink,
)
from sealpipe.prompts import Prompt
from sealpipe.reference import Key
from sealpipe.secret import as_secret
from sealpipe.state.entry import Entry
from sealpipe.wire import envelope, fields, jsontext, link


def check_targets(session: Session, targets: Sequence[SinkTarget]) -> Flow[None]:
    """Check that each target is valid for its sink, before anything is fetched. Raises PluginError, UsageError."""
    yield from describe_writes(session, [SinkWrite(target.fill({}), (), target.mode, "") for target in targets])


def plan_writes(targets: Sequence[SinkTarget], share_fields: Sequence[fields.Field]) -> tuple[SinkWrite, ...]:
    """Plan the writes of a share's fields, without a marker yet. Raises UsageError, ReferenceValueError."""
    writes = []
    for target in targets:
        try:
            sink_fields = select_values(
                target, map_keys(target, list(_list_labels(target, share_fields)), SHARE), share_fields, SHARE
            )
        except MisfitError as misfit:
            raise ReferenceValueError(
                f"{target.text}: {misfit}", locator=target.text, remedy="list the fields with --dry-run"
            ) from None
        if sink_fields:
            writes.append(SinkWrite(target.fill({}), tuple(sink_fields), target.mode, ""))
    return tuple(merge_writes(writes))


def describe_plan(session: Session, writes: Sequence[SinkWrite]) -> Flow[tuple[str, ...]]:
    """Describe the writes in their sinks' words, with the keys."""
    words = yield from describe_writes(session, writes)
    keys = [", ".join(escape_name(key) for key in write.keys if key) for write in writes]
    return tuple(
        f"{description} ({key_names})" if key_names else description
        for description, key_names in zip(words, keys, strict=True)
    )


def write_all(session: Session, writes: Sequence[SinkWrite], entry: Entry | None) -> Flow[tuple[str, ...]]:
    """Do all writes, and return where the fields are stored. A write that is noted in the entry is not repeated."""
    report: list[str] = []
    try:
        for write in writes:
            receipt = yield from write_to_sink(session, write, entry)
            report.append(f"{'already' if receipt.already else 'stored'} in {write.ref}")
        if entry is not None:
            yield Do(entry.note_stored)
    except SealpipeError as error:
        error.add_note(Note("; ".join(("nothing was shared", *report))))
        raise
    return tuple(report)


def write_from_entry(session: Session, entry: Entry, *, resend: bool = False) -> Flow[tuple[str, ...]]:
    """Store the fields of an entry's share after a kill: the values are in its own envelope.

    A write that may be in a sink that cannot be read back is repeated only with `resend`. Raises UnknownOutcomeError.
    """
    share_fields: list[fields.Field] = yield Do(partial(_open_body, entry.meta, entry.body))
    writes = mark_writes(plan_writes(parse_targets(entry.meta["also_to"]), share_fields), entry.meta)
    if resend:
        is_unclear = [entry.write_state(write.marker, write.target) == "storing" for write in writes]
        writes = [
            each._replace(mode="replace") if may_be_stored else each
            for each, may_be_stored in zip(writes, is_unclear, strict=True)
        ]
    try:
        return (yield from write_all(session, writes, entry))
    except UnknownOutcomeError as error:
        error.remedy = f"`sealpipe resume {entry.id} --resend` stores it again, whatever is there"
        raise


def mark_writes(writes: Sequence[SinkWrite], meta: Mapping[str, Any]) -> list[SinkWrite]:
    """Return the writes with their share's marker, by which a sink recognizes what is stored already."""
    return [write._replace(marker=meta["idempotency_key"]) for write in writes]


def _list_labels(target: SinkTarget, share_fields: Sequence[fields.Field]) -> Iterable[Prompt]:
    """Return the fields by label; for an optional target also the keys it names, whose fields may be missing."""
    labels = [field.key for field in share_fields]
    if target.ref.flag("optional"):
        labels += [item.name for item in target.ref.selector or () if isinstance(item, Key)]
    return (Prompt(label, label) for label in (dict.fromkeys(labels) if len(labels) > len(share_fields) else labels))


def _open_body(meta: Mapping[str, Any], body: bytes | bytearray) -> list[fields.Field]:
    members: Any = jsontext.loads(bytes(body))
    passcode = meta["passcode"]
    content_key = link.decode_fragment(meta["fragment"].reveal())
    data = envelope.open(content_key, members["data"], None if passcode is None else passcode.reveal())
    return [fields.Field(each.key, as_secret(each.value), each.type) for each in fields.load(data)]
