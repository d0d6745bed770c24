"""Write fields into sinks, each target once and with retries.

The writes of `share --also-to`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sealpipe.budget import MAX_BACKOFF, Budget
from sealpipe.cancellation import CancelledCallError
from sealpipe.errors import (
    NOT_TAKEN,
    Note,
    ReferenceValueError,
    Remedy,
    SealpipeError,
    UnavailableError,
    UnknownOutcomeError,
    UsageError,
)
from sealpipe.plugin import BLIND, Locator, Mode, SinkField, WriteResult
from sealpipe.prompts import Prompt
from sealpipe.reference import Key, Reference
from sealpipe.registry import Registry
from sealpipe.registry.sinks import describe_write, write_fields
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sinks.targets import (
    SHARE,
    KeyMapping,
    MisfitError,
    SinkTarget,
    SourceWords,
    check_decode,
    escape_name,
    map_keys,
    parse_targets,
    select_values,
)
from sealpipe.sources.resolve import MAX_TRIES
from sealpipe.state.entry import Entry, get_marker
from sealpipe.wire import envelope, fields, jsontext, link


class WriteLog(Protocol):
    """Records the state of a submission's writes to sinks that cannot be read back."""

    def write_state(self, marker: str, target: str) -> str:
        """Return `storing` or `stored`; empty if not begun."""

    def note_write(self, marker: str, target: str, state: str) -> None:
        """Record the state of a write. Raises StateError."""


class SinkContext(Protocol):
    """What writing needs: the registry of plugins, and the time for retries."""

    @property
    def registry(self) -> Callable[[], Registry]:
        """Get the registry."""

    def start_budget(self) -> Budget:
        """Start the time and tries of one write."""

    def wait(self, seconds: float) -> None:
        """Wait, while the caller may cancel."""


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
    """Merge writes of one submission to one target.

    UsageError if two write the same key, or in different modes.
    """
    writes_by_target: dict[tuple[str, str], SinkWrite] = {}
    for write in writes:
        target = str(write.ref), write.marker
        earlier = writes_by_target.get(target)
        if earlier is None:
            writes_by_target[target] = write
            continue
        if (
            earlier.mode != write.mode
            or set(earlier.keys) & set(write.keys)
            or "" in (*earlier.keys, *write.keys)
        ):
            raise UsageError(
                f"two targets contradict each other about {write.ref}", remedy="name each key once"
            )
        writes_by_target[target] = write._replace(fields=(*earlier.fields, *write.fields))
    return list(writes_by_target.values())


def check_targets(
    session: SinkContext,
    targets: Sequence[SinkTarget],
    writes: Sequence[SinkWrite] | None = None,
) -> None:
    """Check that each target is valid for its sink, before anything is read or sent.

    `writes` are samples of what they write; None if their places have no placeholder. Raises
    PluginError, UsageError.
    """
    for target in targets:
        check_decode(target, session.registry().sink_info(target.ref.name).capabilities)
    if writes is None:
        writes = [SinkWrite(target.fill({}), (), target.mode, "") for target in targets]
    describe_writes(session, writes)


def describe_writes(session: SinkContext, writes: Sequence[SinkWrite]) -> list[str]:
    """Describe each write in its sink's words; no backend is asked.

    Raises PluginError, UsageError.
    """
    descriptions: list[str] = _describe_all(session, writes) if writes else []
    return descriptions


def write_to_sink(
    session: SinkContext, write: SinkWrite, ledger: WriteLog | None = None
) -> WriteResult:
    """Write to a sink, which confirms it. Raises PluginError, UsageError.

    Only `ledger` knows whether a sink that cannot be read back has stored the fields before.
    """
    budget = session.start_budget()
    for tries in range(1, MAX_TRIES + 1):
        try:
            return _write_once(session, write, ledger)
        except UnavailableError as error:
            requested = error.retry_after if isinstance(error.retry_after, int | float) else 0.0
            delay = max(budget.draw_backoff(tries), min(MAX_BACKOFF, requested))
            if tries == MAX_TRIES or delay >= budget.get_remaining():
                raise
        session.wait(delay)
    raise AssertionError("the last try returns or raises")


def locate_sink(session: SinkContext, ref: Reference) -> Locator:
    """Return the locator of a sink's reference. Raises ReferenceSyntaxError."""
    return session.registry().locate(ref, "sink")


def is_write_only(session: SinkContext, ref: Reference) -> bool:
    """Return whether the sink cannot read back what it stored. Raises ReferenceSyntaxError."""
    return BLIND in session.registry().sink_info(ref.name).capabilities


def _describe_all(session: SinkContext, writes: Sequence[SinkWrite]) -> list[str]:
    registry = session.registry()
    return [
        describe_write(registry, write.ref.name, locate_sink(session, write.ref), write.mode)
        for write in writes
    ]


def _write_once(session: SinkContext, write: SinkWrite, ledger: WriteLog | None) -> WriteResult:
    registry, locator = session.registry(), locate_sink(session, write.ref)
    registry.sink(write.ref.name)  # raises for missing settings before the write is noted
    is_write_only_sink = ledger is not None and is_write_only(session, write.ref)
    if not is_write_only_sink or ledger is None:
        return write_fields(
            registry, write.ref.name, locator, write.fields, write.mode, write.marker
        )
    target = write.target
    state = ledger.write_state(write.marker, target)
    if state == "stored":
        return WriteResult(locator, known=False, already=True)
    if state == "storing" and write.mode == "create":
        raise UnknownOutcomeError(
            (
                f"an earlier run was interrupted while it stored {escape_name(target, 300)}: "
                "it may be stored already"
            ),
            locator=str(write.ref),
            remedy="if you may overwrite the target, run it again with ?mode=replace in the target",
        )
    ledger.note_write(write.marker, target, "storing")
    try:
        receipt = write_fields(
            registry, write.ref.name, locator, write.fields, write.mode, write.marker
        )
    except (*NOT_TAKEN, CancelledCallError):  # cancelled before the sink was called
        ledger.note_write(write.marker, target, state or "not stored")
        raise
    ledger.note_write(write.marker, target, "stored")
    return receipt


def plan_share_writes(
    targets: Sequence[SinkTarget], share_fields: Sequence[fields.Field]
) -> tuple[SinkWrite, ...]:
    """Plan the writes of a share's fields, without a marker yet.

    Raises UsageError, ReferenceValueError.
    """
    writes = []
    for target in targets:
        sink_fields = select_fields(target, map_fields(target, share_fields), share_fields)
        if sink_fields:
            writes.append(SinkWrite(target.fill({}), tuple(sink_fields), target.mode, ""))
    return tuple(merge_writes(writes))


def map_fields(
    target: SinkTarget, known: Sequence[fields.Field], source: SourceWords = SHARE
) -> list[KeyMapping]:
    """Map a target's keys to the labels of fields. Raises UsageError."""
    return map_keys(target, list(_list_labels(target, known)), source)


def select_fields(
    target: SinkTarget,
    mappings: Sequence[KeyMapping],
    known: Sequence[fields.Field],
    source: SourceWords = SHARE,
) -> list[SinkField]:
    """Select a target's values. Raises ReferenceValueError if there is not one for each key."""
    try:
        return select_values(target, mappings, known, source)
    except MisfitError as misfit:
        raise ReferenceValueError(
            f"{target.text}: {misfit}",
            locator=target.text,
            remedy=Remedy(
                "list the fields with --dry-run",
                python="name the label of a field that is shared",
            ),
        ) from None


def describe_plan(session: SinkContext, writes: Sequence[SinkWrite]) -> tuple[str, ...]:
    """Describe the writes in their sinks' words, with the keys."""
    words = describe_writes(session, writes)
    keys = [", ".join(escape_name(key) for key in write.keys if key) for write in writes]
    return tuple(
        f"{description} ({key_names})" if key_names else description
        for description, key_names in zip(words, keys, strict=True)
    )


def write_share_fields(
    session: Session, writes: Sequence[SinkWrite], entry: Entry | None
) -> tuple[str, ...]:
    """Do all writes, and return where the fields are stored.

    A write that is noted in the entry is not repeated.
    """
    report: list[str] = []
    try:
        for write in writes:
            receipt = write_to_sink(session, write, entry)
            report.append(f"{'already' if receipt.already else 'stored'} in {write.ref}")
        if entry is not None:
            entry.note_stored()
    except SealpipeError as error:
        error.add_note(Note("; ".join(("nothing was shared", *report))))
        raise
    return tuple(report)


def write_from_entry(session: Session, entry: Entry, *, resend: bool = False) -> tuple[str, ...]:
    """Store the fields of an entry's share after a kill: the values are in its own envelope.

    A write that may be in a sink that cannot be read back is repeated only with `resend`. Raises
    UnknownOutcomeError.
    """
    share_fields = _open_body(entry.meta, entry.body)
    writes = mark_writes(
        plan_share_writes(parse_targets(entry.meta["also_to"]), share_fields), entry.meta
    )
    if resend:
        is_unclear = [
            entry.write_state(write.marker, write.target) == "storing" for write in writes
        ]
        writes = [
            each._replace(mode="replace") if may_be_stored else each
            for each, may_be_stored in zip(writes, is_unclear, strict=True)
        ]
    try:
        return write_share_fields(session, writes, entry)
    except UnknownOutcomeError as error:
        remedy = f"`{entry.commands.resend}` stores it again, whatever is there"
        raise error.copy_with(remedy=remedy) from error.__cause__


def mark_writes(writes: Sequence[SinkWrite], meta: Mapping[str, Any]) -> list[SinkWrite]:
    """Return the writes with their share's marker, which tells a sink what it has already."""
    return [write._replace(marker=get_marker(meta)) for write in writes]


def _list_labels(target: SinkTarget, share_fields: Sequence[fields.Field]) -> Iterable[Prompt]:
    """Return the fields by label.

    For an optional target also the keys it names, whose fields may be missing.
    """
    labels = [field.key for field in share_fields]
    if target.ref.flag("optional"):
        labels += [item.name for item in target.ref.selector or () if isinstance(item, Key)]
    return (
        Prompt(label, label)
        for label in (dict.fromkeys(labels) if len(labels) > len(share_fields) else labels)
    )


def _open_body(meta: Mapping[str, Any], body: bytes | bytearray) -> list[fields.Field[Secret]]:
    members: Any = jsontext.loads(bytes(body))
    passcode = meta["passcode"]
    content_key = link.decode_fragment(meta["fragment"].reveal())
    data = envelope.open(
        content_key, members["data"], None if passcode is None else passcode.reveal()
    )
    return [fields.hidden(each) for each in fields.load(data)]
