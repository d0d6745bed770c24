"""Copy values: read all, then write one store after the other. Safe to run again.

A value that its source draws at each read is in one store before it is in another. The record of
an unfinished copy, and a marker beside the value, tell a rerun that this store has it: the rerun
takes it from there. All other stores are written by their content: what is equal stays.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.cancellation import CancelledCallError
from sealpipe.copy.options import CopyJob
from sealpipe.copy.plan import PlannedWrite, plan_writes
from sealpipe.errors import (
    NOT_TAKEN,
    Note,
    PluginError,
    ReferenceValueError,
    SealpipeError,
    SecretNotFoundError,
    UnknownOutcomeError,
    UsageError,
    add_to_remedy,
)
from sealpipe.parsing import format_time
from sealpipe.plugin import Locator, Mode, OutgoingAction, WriteResult
from sealpipe.policy import LocalContext, check_policies, run_under_policy
from sealpipe.reference import FieldSpec
from sealpipe.requirements import check_needs
from sealpipe.secret import Secret
from sealpipe.sinks.write import SinkWrite, check_targets, describe_plan, write_to_sink
from sealpipe.sources.resolve import (
    Cache,
    ReadField,
    collect_remarks,
    find_earliest_expiry,
    resolve_fields,
)
from sealpipe.state.copies import CopyRecord
from sealpipe.wire.fields import Field

MAX_AGE: Final = timedelta(hours=23)
"""An unfinished copy that is older is not gone on with: a new one begins."""

RecordOpener = Callable[[str], CopyRecord]
"""Opens the record of a copy, by its name."""


class CopiedValues(NamedTuple):
    """What is in one target: `already`, if it was there before; `known`, if it was read back."""

    target: str
    keys: tuple[str, ...]
    already: bool
    known: bool


@dataclass(slots=True)
class CopyResult:
    """A copy whose writes are done. `finish` it when that is told.

    `taken_back` are the targets that an earlier run of it has written, and where its new values
    were read instead of drawing others.
    """

    written: tuple[CopiedValues, ...]
    labels: tuple[tuple[str, str], ...]
    taken_back: tuple[str, ...]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    record: CopyRecord | None = None

    def finish(self) -> None:
        """End its record: from now on the same copy is a new one. Raises StateError."""
        record, self.record = self.record, None
        if record is not None:
            record.end()

    def close(self) -> None:
        """Keep its record if it is not finished, and unlock it."""
        if self.record is not None:
            self.record.close()


class CopyPlan(NamedTuple):
    """What a copy would do, in its order: the target, its keys, and the sink's words."""

    labels: tuple[tuple[str, str], ...]
    writes: tuple[tuple[str, tuple[str, ...], str], ...]
    remarks: tuple[str, ...]


class _ReadCopy(NamedTuple):
    """A copy whose sources have been read."""

    fields: tuple[ReadField, ...]
    writes: tuple[PlannedWrite, ...]
    descriptions: tuple[str, ...]
    action: OutgoingAction
    remarks: tuple[str, ...]


def plan_dry_run(context: LocalContext, job: CopyJob) -> CopyPlan:
    """Do everything but write, policies included, for `copy --dry-run`."""
    read = _read(context, job)
    return CopyPlan(
        read.action.labels,
        tuple(
            (str(write.ref), write.keys, words)
            for write, words in zip(read.writes, read.descriptions, strict=True)
        ),
        read.remarks,
    )


def copy(
    context: LocalContext, job: CopyJob, open_record: RecordOpener, run: str = ""
) -> CopyResult:
    """Copy the values, and confirm each write.

    Policies are asked before anything is read, and again before anything is written. All that can
    be checked is checked before the first write; the first write that fails ends the copy, and its
    error says what was written. `open_record` is called only if a rerun needs the record. `run`
    is the CI run that a repeated job still belongs to: it makes the marker, so that a rerun on
    another machine knows it. Raises PluginError, UsageError, PolicyError and StateError.
    """
    read = _read(context, job)

    def work(cleared: LocalContext) -> CopyResult:
        writing = _Writing(cleared, read)
        if any(write.read_back or write.is_write_only for write in read.writes):
            record = open_record(_name_record(cleared, job))
            return writing.run_with_record(record, _make_copy_marker(job, run))
        return writing.run()

    def describe(result: CopyResult) -> dict[str, object]:
        if not result.taken_back:
            return {"outcome": "done"}
        names = [name.partition(":")[0] for name in result.taken_back]
        sources = dict.fromkeys((*read.action.sources, *_identify(context, "source", names)))
        return {"outcome": "done", "resumed": True, "sources": [*sources]}

    return run_under_policy(context, read.action, work, describe)


def _read(context: LocalContext, job: CopyJob) -> _ReadCopy:
    """Check the copy, read its sources and plan its writes."""
    registry = context.registry()
    action = OutgoingAction(
        "copy",
        sources=_identify(context, "source", [each.ref.name for each in job.fields]),
        sinks=_identify(context, "sink", [each.ref.name for each in job.targets]),
    )
    for spec in job.fields:
        registry.locate(spec.ref)
    check_policies(context, lambda: action._replace(complete=False))
    check_needs(context.registry, job.needs)
    check_targets(context, job.targets)
    cache: Cache = {}
    fields = _read_fields(context, job.fields, cache)
    writes = plan_writes(registry, job.targets, fields)
    values = [each.field for each in fields]
    planned = [SinkWrite(each.ref, each.select(values), each.mode, "") for each in writes]
    # As they will be written: a target may decode them.
    _refuse_credential(context, (value for write in planned for _, value in write.fields))
    descriptions = describe_plan(context, planned)
    labels = tuple((each.field.key, each.field.type) for each in fields)
    action = action._replace(labels=labels)
    read_back = [each.ref.name for each in writes if each.read_back]
    sources = (*action.sources, *_identify(context, "source", read_back))
    # A rerun may hand on what these stores have.
    check_policies(context, lambda: action._replace(sources=tuple(dict.fromkeys(sources))))
    return _ReadCopy(fields, writes, descriptions, action, _list_remarks(cache))


def _identify(context: LocalContext, kind: str, names: Sequence[str]) -> tuple[str, ...]:
    registry = context.registry()
    return tuple(dict.fromkeys(registry.identify(kind, name) for name in names))


def _read_fields(
    context: LocalContext, specs: Sequence[FieldSpec], cache: Cache
) -> tuple[ReadField, ...]:
    fields = resolve_fields(specs, context.registry, cache)
    if not fields:
        raise UsageError(
            "nothing to copy: all values are optional, and none is there",
            remedy="give one of them a value, or remove ?optional=1 from one",
        )
    return tuple(fields)


def _refuse_credential(context: LocalContext, values: Iterable[Secret]) -> None:
    if any(map(context.gate.owns, values)):
        raise UsageError(
            "a value holds sealpipe's own credential, which is never handed on",
            remedy="check its reference; to hand over a key, create a separate one",
        )


def _list_remarks(cache: Cache) -> tuple[str, ...]:
    expiry = find_earliest_expiry(cache)
    ends = (
        ()
        if expiry is None
        else (f"{expiry[1]} ends at {format_time(expiry[0])}: no copy outlives it",)
    )
    return (*collect_remarks(cache), *ends)


class _Writing:
    """The writes of one copy."""

    def __init__(self, context: LocalContext, read: _ReadCopy) -> None:
        self._context, self._writes, self._remarks = context, read.writes, read.remarks
        self._labels = read.action.labels
        self._fields: list[Field] = [each.field for each in read.fields]
        self._record: CopyRecord | None = None
        self._done: list[CopiedValues] = []
        self._taken_back: list[str] = []

    def run(self) -> CopyResult:
        """Do all writes. The error of the first that fails says what was written before it."""
        self._check_sinks()
        for number, write in enumerate(self._writes):
            try:
                result = self._write(write)
            except (PluginError, UsageError) as error:
                raise self._describe_failure(error, self._writes[number:]) from error.__cause__
            self._done.append(
                CopiedValues(str(write.ref), write.keys, result.already, result.known)
            )
        return CopyResult(tuple(self._done), self._labels, tuple(self._taken_back), self._remarks)

    def run_with_record(self, record: CopyRecord, marker: str) -> CopyResult:
        """Do all writes, and record how far they are.

        An unfinished copy goes on with its own marker.
        """
        self._record = record
        try:
            if not _is_unfinished(record):
                record.begin(marker)
            result = self.run()
        except BaseException as error:
            if isinstance(error, SealpipeError) and not record.has_writes():
                record.end()
            record.close()
            raise
        result.record = record
        return result

    def _check_sinks(self) -> None:
        """Ask each store whether it can be written, before the first of several is."""
        if len(self._writes) < 2:
            return
        for name in dict.fromkeys(write.ref.name for write in self._writes):
            health = self._context.registry().check("sink", name)
            if not health.ok:
                raise PluginError(
                    f"the sink {name} cannot be used: {health.detail}",
                    locator=f"{name}:",
                    remedy="nothing was written; see `sealpipe doctor`",
                )

    def _write(self, write: PlannedWrite) -> WriteResult:
        record = self._record
        if record is None or not (write.read_back or write.is_write_only):
            return self._write_by_content(write)
        state = record.state(write.name)
        if write.is_write_only:
            return self._write_blindly(record, write, state)
        if state not in ("stored", "creating") or not self._take_back(write):
            result = self._write_first(record, write)
            if not result.already:
                return self._even_out(write) if len(write.read_back) > 1 else result
            if not self._take_back(write):
                return result
        result = self._write_by_content(write)
        record.note(write.name, "stored")
        return result

    def _write_first(self, record: CopyRecord, write: PlannedWrite) -> WriteResult:
        """Write where a rerun has to read the new values; PluginError if it could not.

        `creating` is noted where nothing is: what is there after an interruption can only be ours.
        """
        is_there = self._read_back(write) is not None
        begins = "creating" if write.mode == "create" and not is_there else "storing"
        result = self._put_noted(record, write, write.mode, record.marker, begins)
        if not is_there:  # before a second store has them
            self._read_back(write)
        return result

    def _even_out(self, write: PlannedWrite) -> WriteResult:
        """Write all new values again, by their content.

        A store that writes one key after the other leaves those as they are that an interrupted run
        has marked. No other store has their values yet, and whatever is there is of this copy.
        """
        mode: Mode = "replace" if write.mode == "create" else write.mode
        return self._put(write, mode, _draw_marker())._replace(already=False)

    def _write_by_content(self, write: PlannedWrite) -> WriteResult:
        """Write unless all is there, and nothing that would go: then not even a marker changes."""
        if self._has_values(write):
            return WriteResult(Locator(write.ref.name, write.ref.body), already=True)
        return self._put(write, write.mode, _draw_marker())

    def _has_values(self, write: PlannedWrite) -> bool:
        """Return whether the source of the same name finds the values there; False if unknown."""
        if write.document is None:
            return False
        values = write.select(self._fields)
        try:
            read = resolve_fields([FieldSpec(None, write.document)], self._context.registry, {})
        except SealpipeError:  # the sink says it better
            return False
        found = {each.field.key if write.has_keys else "": each.field.value for each in read}
        wanted = dict(values)
        if write.mode == "merge":
            found = {key: value for key, value in found.items() if key in wanted}
        return found == wanted

    def _write_blindly(self, record: CopyRecord, write: PlannedWrite, state: str) -> WriteResult:
        """Write to what cannot be read back; what this copy has stored there is written again."""
        if state == "storing" and write.mode == "create":
            raise UnknownOutcomeError(
                f"an earlier run was interrupted while it stored {write.name}: it may be there",
                locator=str(write.ref),
                remedy="if you may overwrite the target, run it again with ?mode=replace in the "
                "target",
            )
        mode: Mode = "replace" if state == "stored" and write.mode == "create" else write.mode
        return self._put_noted(record, write, mode, record.marker, "storing")

    def _take_back(self, write: PlannedWrite) -> bool:
        """Take the drawn values that this copy has stored; False if they are not there."""
        found = self._read_back(write)
        if found is None:
            return False
        self._fields = [found.get(each.key, each) for each in self._fields]
        self._taken_back.append(write.name)
        return True

    def _read_back(self, write: PlannedWrite) -> Mapping[str, Field] | None:
        specs = [FieldSpec(label, ref) for label, ref in write.read_back.items()]
        try:
            read = self._resolve(specs)
        except ReferenceValueError as error:
            if len(write.keys) > 1 or not write.has_keys:
                raise error.copy_with(
                    message=f"{write.name} cannot be read back: {error.message}",
                    remedy=f"name the key in the target: #KEY={next(iter(write.read_back))}",
                ) from error.__cause__
            # A store of one value takes it under any key, and has none.
            read = self._resolve(
                [replace(each, ref=replace(each.ref, selector=None)) for each in specs]
            )
        if read is None:
            return None
        types = dict(self._labels)
        return {
            each.field.key: Field(each.field.key, each.field.value, types[each.field.key])
            for each in read
        }

    def _resolve(self, specs: Sequence[FieldSpec]) -> list[ReadField] | None:
        try:
            return resolve_fields(specs, self._context.registry, {})
        except SecretNotFoundError:
            return None

    def _put(self, write: PlannedWrite, mode: Mode, marker: str) -> WriteResult:
        values = write.select(self._fields)
        return write_to_sink(self._context, SinkWrite(write.ref, values, mode, marker))

    def _put_noted(
        self, record: CopyRecord, write: PlannedWrite, mode: Mode, marker: str, begins: str
    ) -> WriteResult:
        earlier = record.state(write.name)
        record.note(write.name, begins)
        try:
            result = self._put(write, mode, marker)
        except (*NOT_TAKEN, CancelledCallError):
            record.note(write.name, earlier or "not stored")
            raise
        record.note(write.name, "stored")
        return result

    def _describe_failure(
        self, error: PluginError | UsageError, unfinished: Sequence[PlannedWrite]
    ) -> SealpipeError:
        """Return the error with what was written, what was not, and how to go on."""
        if len(self._writes) < 2:
            return error
        failed, *rest = [each.name for each in unfinished]
        is_stored = self._record is not None and self._record.state(failed) == "stored"
        states: dict[str, list[str]] = {
            "written": [each.name for each in self._writes[: -len(unfinished)]],
            "not known whether written": [],
            "not written": [],
        }
        kind = "not written" if isinstance(error, NOT_TAKEN) else "not known whether written"
        states["written" if is_stored else kind].append(failed)
        states["not written"] += rest
        remedy = error.remedy
        if states["written"]:
            remedy = add_to_remedy(
                remedy, f"{'; ' if remedy else ''}then run the same command again"
            )
        described = error.copy_with(remedy=remedy)
        for state, names in states.items():
            if names:
                described.add_note(Note(f"{state}: {', '.join(names)}"))
        return described


def _is_unfinished(record: CopyRecord) -> bool:
    """Return whether an earlier run, not too long ago, has begun to write."""
    begun_at = record.begun_at
    is_recent = begun_at is not None and datetime.now(UTC) - begun_at < MAX_AGE
    return is_recent and record.has_writes()


def _name_record(context: LocalContext, job: CopyJob) -> str:
    """Return the name of the record on this machine.

    The same command elsewhere is another copy: in another folder, where files have the same names,
    or with other settings of its stores.
    """
    registry = context.registry()
    settings = (repr(registry.settings("sink", each.ref.name)) for each in job.targets)
    return _digest(job.name, str(Path.cwd()), *settings)[:32]


def _draw_marker() -> str:
    """Return a marker that no store has: so the content decides."""
    return f"copy-{secrets.token_hex(6)}"


def _make_copy_marker(job: CopyJob, run: str) -> str:
    if not run:
        return f"copy-{secrets.token_hex(12)}"
    return f"copy-{_digest(run, job.name)[:24]}"


def _digest(*texts: str) -> str:
    return sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
