"""Write fields into sinks: select a target's values, and write each target once, with retries.

The fields may come from a stranger: a value that does not fit is a `MisfitError`, whose text contains our names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from sealpipe.errors import NOT_TAKEN, PluginError, UnavailableError, UnknownOutcomeError, UsageError
from sealpipe.flows import MAX_BACKOFF, Do, Flow, Wait
from sealpipe.flows.resolve import MAX_TRIES
from sealpipe.flows.resolve.select import decode_text, trim
from sealpipe.flows.session import Session
from sealpipe.flows.store import REQUEST, KeyMapping, SinkTarget, SourceWords, escape_name
from sealpipe.plugin import BLIND, Locator, Mode, SinkField, WriteResult
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field, revealed


class WriteLog(Protocol):
    """Records, from run to run, the state of a submission's writes to sinks that cannot be read back."""

    def write_state(self, marker: str, target: str) -> str:
        """Return `storing` or `stored`; empty if not begun."""

    def note_write(self, marker: str, target: str, state: str) -> None:
        """Record the state of a write. Raises StateError."""


class SinkWrite(NamedTuple):
    """The fields to write to one target, for one submission, which `marker` identifies."""

    ref: Reference
    fields: tuple[SinkField, ...]
    mode: Mode
    marker: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys to write."""
        return tuple(field.key for field in self.fields)

    @property
    def target(self) -> str:
        """The target's name in a ledger."""
        return f"{self.ref}#{','.join(self.keys)}"


def merge_writes(writes: Iterable[SinkWrite]) -> list[SinkWrite]:
    """Merge writes of one submission to one target. UsageError if two write the same key, or in different modes."""
    writes_by_target: dict[tuple[str, str], SinkWrite] = {}
    for write in writes:
        target = str(write.ref), write.marker
        earlier = writes_by_target.get(target)
        if earlier is None:
            writes_by_target[target] = write
            continue
        if earlier.mode != write.mode or set(earlier.keys) & set(write.keys) or "" in (*earlier.keys, *write.keys):
            raise UsageError(f"two targets contradict each other about {write.ref}", remedy="name each key once")
        writes_by_target[target] = write._replace(fields=(*earlier.fields, *write.fields))
    return list(writes_by_target.values())


def describe_writes(session: Session, writes: Sequence[SinkWrite]) -> Flow[list[str]]:
    """Describe what each write would do, in its sink's words; no backend is asked. Raises PluginError, UsageError."""
    descriptions: list[str] = (yield Do(partial(_describe_all, session, writes))) if writes else []
    return descriptions


def write_to_sink(session: Session, write: SinkWrite, ledger: WriteLog | None = None) -> Flow[WriteResult]:
    """Write to a sink, which confirms it. Raises PluginError, UsageError.

    Only `ledger` knows whether a sink that cannot be read back has stored the fields before.
    """
    budget = session.start_budget()
    for tries in range(1, MAX_TRIES + 1):
        try:
            receipt: WriteResult = yield Do(partial(_write_once, session, write, ledger), is_changing=True)
            return receipt
        except UnavailableError as error:
            requested = error.retry_after if isinstance(error.retry_after, int | float) else 0.0
            delay = max(budget.draw_backoff(tries), min(MAX_BACKOFF, requested))
            if tries == MAX_TRIES or delay >= budget.get_remaining():
                raise
        yield Wait(delay)
    raise AssertionError("the last try returns or raises")


def locate_sink(session: Session, ref: Reference) -> Locator:
    """Return the locator of a sink's reference. Blocks. Raises ReferenceSyntaxError."""
    return session.registry().locate(ref, "sink")


def is_write_only(session: Session, ref: Reference) -> bool:
    """Return whether the sink cannot read back what it stored. Blocks. Raises ReferenceSyntaxError."""
    return BLIND in session.registry().sink_info(ref.name).capabilities


def _describe_all(session: Session, writes: Sequence[SinkWrite]) -> list[str]:
    from sealpipe.registry.calls import describe_write

    registry = session.registry()
    return [describe_write(registry, write.ref.name, locate_sink(session, write.ref), write.mode) for write in writes]


def _write_once(session: Session, write: SinkWrite, ledger: WriteLog | None) -> WriteResult:
    from sealpipe.registry.calls import write_fields

    registry, locator = session.registry(), locate_sink(session, write.ref)
    registry.sink(write.ref.name)  # raises for missing settings before the write is noted
    is_write_only_sink = ledger is not None and is_write_only(session, write.ref)
    if not is_write_only_sink or ledger is None:
        return write_fields(registry, write.ref.name, locator, write.fields, write.mode, write.marker)
    target = write.target
    state = ledger.write_state(write.marker, target)
    if state == "stored":
        return WriteResult(locator, known=False, already=True)
    if state == "storing" and write.mode == "create":
        raise UnknownOutcomeError(
            f"an earlier run was interrupted while it stored {escape_name(target, 300)}: it may be stored already",
            locator=str(write.ref),
            remedy="if you may overwrite what is there, run it again with ?mode=replace in the target",
        )
    ledger.note_write(write.marker, target, "storing")
    try:
        receipt = write_fields(registry, write.ref.name, locator, write.fields, write.mode, write.marker)
    except NOT_TAKEN:
        ledger.note_write(write.marker, target, state or "not stored")
        raise
    ledger.note_write(write.marker, target, "stored")
    return receipt


class MisfitError(Exception):
    """The submission does not fit a target. The text says why, and shows nothing of it."""


def select_values(
    target: SinkTarget, mappings: Sequence[KeyMapping], fields: Sequence[Field], source: SourceWords = REQUEST
) -> list[SinkField]:
    """Select a target's values; optional ones that are missing or empty are left out. Raises MisfitError."""
    selected: list[SinkField] = []
    for mapping in mappings:
        value = _select_value(target, mapping, fields, source)
        if value is not None:
            selected.append(SinkField(mapping.key, value))
    return selected


def _select_value(
    target: SinkTarget, mapping: KeyMapping, fields: Sequence[Field], source: SourceWords
) -> Secret | None:
    values = _find_values(mapping, fields)
    optional = target.ref.flag("optional")
    if not values and not optional:
        raise MisfitError(f"it has no value for {mapping.display_name}")
    if len(values) > 1:
        raise MisfitError(f"{source.repeated} {mapping.display_name} several times, with different values")
    value: str | bytes = values[0] if values else ""
    encoding = target.ref.param("decode")
    misfit = ""
    try:
        if encoding and value:
            value = decode_text(value, encoding, mapping.display_name)
        if target.ref.flag("trim"):
            value = trim(value)
    except PluginError:
        misfit = f"{source.value} {mapping.display_name} is not {encoding}"
    if misfit:
        raise MisfitError(misfit)
    if value:
        return Secret(value)
    if optional:
        return None
    raise MisfitError(f"{source.value} {mapping.display_name} is empty")


def _find_values(mapping: KeyMapping, fields: Sequence[Field]) -> list[str]:
    """Return the values that a mapping may mean; equal values count once."""
    if mapping.label is None:
        if len(fields) != 1:
            raise MisfitError(f"it has {len(fields)} fields, but the target accepts one")
        matching = list(fields)
    else:
        matching = [field for field in fields if field.key == mapping.label]
    return list(dict.fromkeys(revealed(field) for field in matching))
