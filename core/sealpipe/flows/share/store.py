"""`share --also-to`: what a share holds, stored before it is posted, so that a new secret reaches store and person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from sealpipe.errors import Note, ReferenceValueError, SealpipeError, UnknownOutcomeError
from sealpipe.flows import Do, Flow
from sealpipe.flows.session import Session
from sealpipe.flows.store.targets import SHARE, SinkTarget, escape_name, map_keys, parse_targets
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
    """Whether each is one that its sink can mean, before anything is fetched. Raises PluginError, UsageError."""
    yield from describe_writes(session, [SinkWrite(target.filled({}), (), target.mode, "") for target in targets])


def plan_writes(targets: Sequence[SinkTarget], found: Sequence[fields.Field]) -> tuple[SinkWrite, ...]:
    """What goes where, of a share's fields; nothing marks it yet. Raises UsageError, ReferenceValueError."""
    made = []
    for target in targets:
        try:
            stored = select_values(target, map_keys(target, list(_labels(target, found)), SHARE), found, SHARE)
        except MisfitError as misfit:
            raise ReferenceValueError(
                f"{target.shown}: {misfit}", locator=target.shown, remedy="list the fields with --dry-run"
            ) from None
        if stored:
            made.append(SinkWrite(target.filled({}), tuple(stored), target.mode, ""))
    return tuple(merge_writes(made))


def describe_plan(session: Session, wanted: Sequence[SinkWrite]) -> Flow[tuple[str, ...]]:
    """What would be done with them, in their sinks' words, with the keys."""
    words = yield from describe_writes(session, wanted)
    keys = [", ".join(escape_name(key) for key in write.keys if key) for write in wanted]
    return tuple(f"{said} ({named})" if named else said for said, named in zip(words, keys, strict=True))


def write_all(session: Session, wanted: Sequence[SinkWrite], entry: Entry | None) -> Flow[tuple[str, ...]]:
    """Put all of them; where they are now, for people. What is noted in the entry is not stored again."""
    done: list[str] = []
    try:
        for write in wanted:
            receipt = yield from write_to_sink(session, write, entry)
            done.append(f"{'already' if receipt.already else 'stored'} in {write.ref}")
        if entry is not None:
            yield Do(entry.note_stored)
    except SealpipeError as error:
        error.add_note(Note("; ".join(("nothing was shared", *done))))
        raise
    return tuple(done)


def write_from_entry(session: Session, entry: Entry, *, resend: bool = False) -> Flow[tuple[str, ...]]:
    """Store what an entry's share holds, where a kill came before: the values are in its own envelope.

    What may be in a place that nobody can read back is stored again only with `resend`. Raises UnknownOutcomeError.
    """
    found: list[fields.Field] = yield Do(partial(_open_body, entry.meta, entry.body))
    wanted = mark_writes(plan_writes(parse_targets(entry.meta["also_to"]), found), entry.meta)
    if resend:
        unclear = [entry.write_state(write.marker, write.place) == "storing" for write in wanted]
        wanted = [each._replace(mode="replace") if lost else each for each, lost in zip(wanted, unclear, strict=True)]
    try:
        return (yield from write_all(session, wanted, entry))
    except UnknownOutcomeError as error:
        error.remedy = f"`sealpipe resume {entry.id} --resend` stores it again, whatever is there"
        raise


def mark_writes(wanted: Sequence[SinkWrite], meta: Mapping[str, Any]) -> list[SinkWrite]:
    """The writes under the mark of their share: what a place has of it already is known by that."""
    return [write._replace(marker=meta["idempotency_key"]) for write in wanted]


def _labels(target: SinkTarget, found: Sequence[fields.Field]) -> Iterable[Prompt]:
    """The fields by their labels, and for an optional target what it names beside: that may have fallen away."""
    labels = [field.key for field in found]
    if target.ref.flag("optional"):
        labels += [item.name for item in target.ref.selector or () if isinstance(item, Key)]
    return (Prompt(label, label) for label in (dict.fromkeys(labels) if len(labels) > len(found) else labels))


def _open_body(meta: Mapping[str, Any], body: bytes | bytearray) -> list[fields.Field]:
    members: Any = jsontext.loads(bytes(body))
    passcode = meta["passcode"]
    content_key = link.decode_fragment(meta["fragment"].reveal())
    data = envelope.open(content_key, members["data"], None if passcode is None else passcode.reveal())
    return [fields.Field(each.key, as_secret(each.value), each.type) for each in fields.load(data)]
