"""Handing values to sinks: each place once, tried again where its backend did not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from sealpipe.errors import NOT_TAKEN, UnavailableError, UnknownOutcomeError, UsageError
from sealpipe.flows.resolve import TRIES
from sealpipe.flows.retry import LONGEST_WAIT
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow, Wait
from sealpipe.flows.storing.targets import printable
from sealpipe.plugin import BLIND, Locator, Mode, Receipt, Stored
from sealpipe.reference import Reference


class Ledger(Protocol):
    """Knows, from run to run, how far a submission is in places that cannot be read back."""

    def placed(self, marker: str, place: str) -> str:
        """`storing`, `stored`; empty for not begun."""

    def note_place(self, marker: str, place: str, state: str) -> None:
        """How far it is from now on. Raises StateError."""


class Parcel(NamedTuple):
    """What goes to one place, for one submission. `marker` stands for that submission."""

    ref: Reference
    fields: tuple[Stored, ...]
    mode: Mode
    marker: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are written."""
        return tuple(field.key for field in self.fields)

    @property
    def place(self) -> str:
        """What a ledger calls it."""
        return f"{self.ref}#{','.join(self.keys)}"


def grouped(parcels: Iterable[Parcel]) -> list[Parcel]:
    """One parcel for each place and submission. UsageError where two write one key, or in two modes."""
    found: dict[tuple[str, str], Parcel] = {}
    for parcel in parcels:
        place = str(parcel.ref), parcel.marker
        before = found.get(place)
        if before is None:
            found[place] = parcel
            continue
        if before.mode != parcel.mode or set(before.keys) & set(parcel.keys) or "" in (*before.keys, *parcel.keys):
            raise UsageError(f"two targets contradict each other about {parcel.ref}", remedy="name each key once")
        found[place] = parcel._replace(fields=(*before.fields, *parcel.fields))
    return list(found.values())


def describe(session: Session, parcels: Sequence[Parcel]) -> Flow[list[str]]:
    """What would be done with each, in its sink's words. Nothing is asked. Raises PluginError, UsageError."""
    told: list[str] = (yield Do(partial(_describe, session, parcels))) if parcels else []
    return told


def put(session: Session, parcel: Parcel, record: Ledger | None = None) -> Flow[Receipt]:
    """Store a parcel, and have it confirmed. Raises PluginError, UsageError.

    `record` is the ledger: it alone knows whether a sink that cannot read back has taken it before.
    """
    budget = session.budget()
    for tries in range(1, TRIES + 1):
        try:
            receipt: Receipt = yield Do(partial(_put, session, parcel, record), changing=True)
            return receipt
        except UnavailableError as error:
            asked = error.retry_after if isinstance(error.retry_after, int | float) else 0.0
            pause = max(budget.back_off(tries), min(LONGEST_WAIT, asked))
            if tries == TRIES or pause >= budget.left():
                raise
        yield Wait(pause)
    raise AssertionError("the last try returns or raises")


def locate(session: Session, ref: Reference) -> Locator:
    """The place that a reference names for its sink. Blocks. Raises ReferenceSyntaxError."""
    return session.registry().locate(ref, "sink")


def is_blind(session: Session, ref: Reference) -> bool:
    """Whether the sink cannot read back what it stored. Blocks. Raises ReferenceSyntaxError."""
    return BLIND in session.registry().sink_info(ref.name).capabilities


def _describe(session: Session, parcels: Sequence[Parcel]) -> list[str]:
    from sealpipe.registry.storing import describe as told

    registry = session.registry()
    return [told(registry, parcel.ref.name, locate(session, parcel.ref), parcel.mode) for parcel in parcels]


def _put(session: Session, parcel: Parcel, record: Ledger | None) -> Receipt:
    from sealpipe.registry.storing import store

    registry, locator = session.registry(), locate(session, parcel.ref)
    registry.sink(parcel.ref.name)  # what it lacks is told before anything counts as under way
    blind = record is not None and is_blind(session, parcel.ref)
    if not blind or record is None:
        return store(registry, parcel.ref.name, locator, parcel.fields, parcel.mode, parcel.marker)
    place = parcel.place
    state = record.placed(parcel.marker, place)
    if state == "stored":
        return Receipt(locator, known=False, already=True)
    if state == "storing" and parcel.mode == "create":
        raise UnknownOutcomeError(
            f"an earlier run was cut off while it stored {printable(place, 300)}: it may be there, and nobody can tell",
            locator=str(parcel.ref),
            remedy="where what is there is yours to write, run it again with ?mode=replace in the target",
        )
    record.note_place(parcel.marker, place, "storing")
    try:
        receipt = store(registry, parcel.ref.name, locator, parcel.fields, parcel.mode, parcel.marker)
    except NOT_TAKEN:
        record.note_place(parcel.marker, place, state or "not stored")
        raise
    record.note_place(parcel.marker, place, "stored")
    return receipt
