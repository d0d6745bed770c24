"""What goes into sinks: the values that a target takes out of fields, each place written once, with retries.

The fields may be a stranger's: what of them does not fit is a `MisfitError`, whose text holds our names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from sealpipe.errors import NOT_TAKEN, PluginError, UnavailableError, UnknownOutcomeError, UsageError
from sealpipe.flows import Do, Flow, Wait
from sealpipe.flows.resolve import TRIES
from sealpipe.flows.resolve.decode import decode_text, trim
from sealpipe.flows.retry import LONGEST_WAIT
from sealpipe.flows.session import Session
from sealpipe.flows.store.targets import REQUEST, KeyMapping, SinkTarget, SourceWords, escape_name
from sealpipe.plugin import BLIND, Locator, Mode, SinkField, WriteResult
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field, revealed


class WriteLog(Protocol):
    """Knows, from run to run, how far a submission is in places that cannot be read back."""

    def write_state(self, marker: str, place: str) -> str:
        """`storing`, `stored`; empty for not begun."""

    def note_write(self, marker: str, place: str, state: str) -> None:
        """How far it is from now on. Raises StateError."""


class SinkWrite(NamedTuple):
    """What goes to one place, for one submission. `marker` stands for that submission."""

    ref: Reference
    fields: tuple[SinkField, ...]
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


def merge_writes(writes: Iterable[SinkWrite]) -> list[SinkWrite]:
    """One write for each place and submission. UsageError where two write one key, or in two modes."""
    found: dict[tuple[str, str], SinkWrite] = {}
    for write in writes:
        place = str(write.ref), write.marker
        before = found.get(place)
        if before is None:
            found[place] = write
            continue
        if before.mode != write.mode or set(before.keys) & set(write.keys) or "" in (*before.keys, *write.keys):
            raise UsageError(f"two targets contradict each other about {write.ref}", remedy="name each key once")
        found[place] = write._replace(fields=(*before.fields, *write.fields))
    return list(found.values())


def describe_writes(session: Session, writes: Sequence[SinkWrite]) -> Flow[list[str]]:
    """What would be done with each, in its sink's words. Nothing is asked. Raises PluginError, UsageError."""
    told: list[str] = (yield Do(partial(_describe, session, writes))) if writes else []
    return told


def write_to_sink(session: Session, write: SinkWrite, record: WriteLog | None = None) -> Flow[WriteResult]:
    """Store a write, and have it confirmed. Raises PluginError, UsageError.

    `record` is the ledger: it alone knows whether a sink that cannot read back has taken it before.
    """
    budget = session.budget()
    for tries in range(1, TRIES + 1):
        try:
            receipt: WriteResult = yield Do(partial(_write_once, session, write, record), changing=True)
            return receipt
        except UnavailableError as error:
            asked = error.retry_after if isinstance(error.retry_after, int | float) else 0.0
            pause = max(budget.back_off(tries), min(LONGEST_WAIT, asked))
            if tries == TRIES or pause >= budget.left():
                raise
        yield Wait(pause)
    raise AssertionError("the last try returns or raises")


def locate_sink(session: Session, ref: Reference) -> Locator:
    """The place that a reference names for its sink. Blocks. Raises ReferenceSyntaxError."""
    return session.registry().locate(ref, "sink")


def is_blind(session: Session, ref: Reference) -> bool:
    """Whether the sink cannot read back what it stored. Blocks. Raises ReferenceSyntaxError."""
    return BLIND in session.registry().sink_info(ref.name).capabilities


def _describe(session: Session, writes: Sequence[SinkWrite]) -> list[str]:
    from sealpipe.registry.calls import describe_write

    registry = session.registry()
    return [describe_write(registry, write.ref.name, locate_sink(session, write.ref), write.mode) for write in writes]


def _write_once(session: Session, write: SinkWrite, record: WriteLog | None) -> WriteResult:
    from sealpipe.registry.calls import write_fields

    registry, locator = session.registry(), locate_sink(session, write.ref)
    registry.sink(write.ref.name)  # what it lacks is told before anything counts as under way
    blind = record is not None and is_blind(session, write.ref)
    if not blind or record is None:
        return write_fields(registry, write.ref.name, locator, write.fields, write.mode, write.marker)
    place = write.place
    state = record.write_state(write.marker, place)
    if state == "stored":
        return WriteResult(locator, known=False, already=True)
    if state == "storing" and write.mode == "create":
        raise UnknownOutcomeError(
            f"an earlier run was interrupted while it stored {escape_name(place, 300)}: it may be stored already",
            locator=str(write.ref),
            remedy="if you may overwrite what is there, run it again with ?mode=replace in the target",
        )
    record.note_write(write.marker, place, "storing")
    try:
        receipt = write_fields(registry, write.ref.name, locator, write.fields, write.mode, write.marker)
    except NOT_TAKEN:
        record.note_write(write.marker, place, state or "not stored")
        raise
    record.note_write(write.marker, place, "stored")
    return receipt


class MisfitError(Exception):
    """What was submitted does not answer what a target takes. The text says how, and never shows any of it."""


def select_values(
    target: SinkTarget, picks: Sequence[KeyMapping], fields: Sequence[Field], source: SourceWords = REQUEST
) -> list[SinkField]:
    """The values that go there; optional ones that are missing or empty are left out. Raises MisfitError."""
    taken: list[SinkField] = []
    for pick in picks:
        value = _value(target, pick, fields, source)
        if value is not None:
            taken.append(SinkField(pick.key, value))
    return taken


def _value(target: SinkTarget, pick: KeyMapping, fields: Sequence[Field], source: SourceWords) -> Secret | None:
    values = _matching(pick, fields)
    optional = target.ref.flag("optional")
    if not values and not optional:
        raise MisfitError(f"it has no value for {pick.name}")
    if len(values) > 1:
        raise MisfitError(f"{source.twice} {pick.name} several times, with different values")
    value: str | bytes = values[0] if values else ""
    how = target.ref.param("decode")
    misfit = ""
    try:
        if how and value:
            value = decode_text(value, how, pick.name)
        if target.ref.flag("trim"):
            value = trim(value)
    except PluginError:
        misfit = f"{source.value} {pick.name} is not {how}"
    if misfit:
        raise MisfitError(misfit)
    if value:
        return Secret(value)
    if optional:
        return None
    raise MisfitError(f"{source.value} {pick.name} is empty")


def _matching(pick: KeyMapping, fields: Sequence[Field]) -> list[str]:
    """The values that a pick may mean; one that is there twice, alike, is one."""
    if pick.label is None:
        if len(fields) != 1:
            raise MisfitError(f"it has {len(fields)} fields, but the target accepts one")
        found = list(fields)
    else:
        found = [field for field in fields if field.key == pick.label]
    return list(dict.fromkeys(revealed(field) for field in found))
