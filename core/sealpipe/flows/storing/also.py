"""`share --also-to`: what a share holds, stored before it is posted, so that a new secret reaches store and person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sealpipe.errors import BadReference, Note, SealpipeError
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow
from sealpipe.flows.storing.putting import Parcel, describe, grouped, put
from sealpipe.flows.storing.taking import MisfitError, take
from sealpipe.flows.storing.targets import SHARE, Target, parse_targets, picks
from sealpipe.prompts import Prompt
from sealpipe.secret import closed
from sealpipe.state.entry import Entry
from sealpipe.wire import envelope, fields, jsontext, link


def check(session: Session, targets: Sequence[Target]) -> Flow[tuple[str, ...]]:
    """What would be done with each, in its sink's words. Nothing is asked. Raises PluginError, UsageError."""
    told = yield from describe(session, [Parcel(target.filled({}), (), target.mode, "") for target in targets])
    return tuple(told)


def parcels(targets: Sequence[Target], found: Sequence[fields.Field], marker: str) -> list[Parcel]:
    """What goes where, of a share's fields. Raises UsageError, BadReference."""
    made = []
    labels = [Prompt(field.key, field.key) for field in found]
    for target in targets:
        try:
            stored = take(target, picks(target, labels, SHARE), found)
        except MisfitError as misfit:
            raise BadReference(
                f"{target.shown}: {misfit}", locator=target.shown, remedy="name the field by its label: #KEY=LABEL"
            ) from None
        if stored:
            made.append(Parcel(target.filled({}), tuple(stored), target.mode, marker))
    return grouped(made)


def store(session: Session, wanted: Sequence[Parcel], entry: Entry | None) -> Flow[tuple[str, ...]]:
    """Put all of them; where they are now, for people. What is noted in the entry is not stored again."""
    told: list[str] = []
    for parcel in wanted:
        try:
            receipt = yield from put(session, parcel)
        except SealpipeError as error:
            error.add_note(Note(f"nothing was shared{'; ' + '; '.join(told) if told else ''}"))
            raise
        told.append(f"{'already' if receipt.already else 'stored'} in {parcel.ref}")
    if entry is not None:
        yield Do(entry.note_stored)
    return tuple(told)


def again(session: Session, entry: Entry) -> Flow[tuple[str, ...]]:
    """Store what an entry's share holds, where a kill came before: the values are in its own envelope."""
    if entry.stored or not entry.meta.get("also_to"):
        return ()
    found: list[fields.Field] = yield Do(partial(_opened, entry.meta, entry.body))
    targets = parse_targets(entry.meta["also_to"])
    return (yield from store(session, parcels(targets, found, entry.meta["idempotency_key"]), entry))


def _opened(meta: Mapping[str, Any], body: bytes | bytearray) -> list[fields.Field]:
    members: Any = jsontext.loads(bytes(body))
    passcode = meta["passcode"]
    content_key = link.decode_fragment(meta["fragment"].reveal())
    data = envelope.open(content_key, members["data"], None if passcode is None else passcode.reveal())
    return [fields.Field(each.key, closed(each.value), each.type) for each in fields.load(data)]
