"""Plan the writes of a copy, once its fields are known: which, in which order. No backend is asked.

A value that its source draws anew at each read, such as a new password, must be in one store before
it is in another: so a store that can be read back is written first, and a rerun reads it there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from sealpipe.errors import ReferenceSyntaxError, UsageError
from sealpipe.plugin import BLIND, Locator, Mode, SinkField
from sealpipe.reference import Everything, Key, Reference
from sealpipe.registry import Registry
from sealpipe.sinks.targets import COPY, KeyMapping, SinkTarget, check_bytes, escape_name
from sealpipe.sinks.write import map_fields, select_fields
from sealpipe.sources.resolve import ReadField
from sealpipe.wire.fields import Field

Part = tuple[SinkTarget, Sequence[KeyMapping]]
"""One target, and what it writes."""


class PlannedWrite(NamedTuple):
    """What is written to one document, at once."""

    ref: Reference
    mode: Mode
    parts: tuple[Part, ...]
    keys: tuple[str, ...]
    is_write_only: bool
    read_back: Mapping[str, Reference]
    """Where a rerun reads drawn values, by label: those that no earlier write has."""
    document: Reference | None
    """All that the document holds, as the source of the same name reads it; None if none does."""

    @property
    def name(self) -> str:
        """Its name in the record and in messages."""
        keys = ",".join(escape_name(key) for key in self.keys if key)
        return f"{self.ref}#{keys}" if keys else str(self.ref)

    @property
    def has_keys(self) -> bool:
        """Whether its document has keys."""
        return self.keys != ("",)

    def list_labels(self, fields: Sequence[Field]) -> Iterator[str]:
        """Yield the labels of the values that it writes."""
        for _, mappings in self.parts:
            for mapping in mappings:
                yield fields[0].key if mapping.label is None else mapping.label

    def select(self, fields: Sequence[Field]) -> tuple[SinkField, ...]:
        """Return the values to write. Raises ReferenceValueError."""
        return tuple(
            value
            for target, mappings in self.parts
            for value in select_fields(target, mappings, fields, COPY)
        )


def plan_writes(
    registry: Registry, targets: Iterable[SinkTarget], read: Sequence[ReadField]
) -> tuple[PlannedWrite, ...]:
    """Plan the writes in their order: first those that a rerun can read drawn values from.

    Raises UsageError and ReferenceValueError: a target does not fit the fields, two contradict each
    other, or a drawn value is in no store that can be read.
    """
    fields = [each.field for each in read]
    writes = [
        write
        for write in (_plan(registry, *group, fields) for group in _group(targets).items())
        if write.keys
    ]
    left = _group_drawn(read, {label for write in writes for label in write.list_labels(fields)})
    first: list[PlannedWrite] = []
    others: list[PlannedWrite] = []
    for write in writes:
        sources = _list_read_back(write, fields)
        taken = [labels for labels in left if labels <= sources.keys()]
        left = [labels for labels in left if labels not in taken]
        read_back = {label: sources[label] for labels in taken for label in sorted(labels)}
        (first if read_back else others).append(write._replace(read_back=read_back))
    if left:
        names = " and ".join(map(escape_name, sorted(left[0])))
        together, all_of_them = (" together", " and has them all") if len(left[0]) > 1 else ("", "")
        raise UsageError(
            f"no target of {names} can be read back{together}: if the copy were interrupted, a "
            "rerun could not write the same value",
            remedy=f"add a target that can be read{all_of_them}: vault: or k8s:, say",
        )
    return (*first, *others)


def _group_drawn(read: Iterable[ReadField], stored: Collection[str]) -> list[frozenset[str]]:
    """Return the labels of drawn values that are stored, those of one document together.

    They belong together, such as the two halves of a key pair.
    """
    groups: dict[Locator, set[str]] = {}
    for each in read:
        if each.drawn_from is not None and each.field.key in stored:
            groups.setdefault(each.drawn_from, set()).add(each.field.key)
    return [frozenset(labels) for labels in groups.values()]


def _group(targets: Iterable[SinkTarget]) -> dict[Reference, list[SinkTarget]]:
    """Group targets by the document that they write to."""
    groups: dict[Reference, list[SinkTarget]] = {}
    for target in targets:
        groups.setdefault(target.fill({}), []).append(target)
    return groups


def _plan(
    registry: Registry, ref: Reference, targets: Sequence[SinkTarget], fields: Sequence[Field]
) -> PlannedWrite:
    parts = tuple((target, map_fields(target, fields, COPY)) for target in targets)
    capabilities = registry.sink_info(ref.name).capabilities
    planned = PlannedWrite(ref, targets[0].mode, parts, (), BLIND in capabilities, {}, None)
    selected = planned.select(fields)
    check_bytes(ref, capabilities, selected)
    keys = tuple(key for key, _ in selected)
    if (
        len({target.mode for target in targets}) > 1
        or len(set(keys)) < len(keys)
        or ("" in keys and len(keys) > 1)
    ):
        raise UsageError(
            f"two targets contradict each other about {ref}", remedy="name each key once"
        )
    planned = planned._replace(keys=keys)
    source = None if planned.is_write_only else _find_source(registry, ref)
    if source is None:
        return planned
    everything = (Everything(),) if planned.has_keys else None
    return planned._replace(document=replace(source, selector=everything))


def _find_source(registry: Registry, ref: Reference) -> Reference | None:
    """Return how the source of the same name reads a target; None without one."""
    params: tuple[tuple[str, str], ...] | None = None
    with suppress(ReferenceSyntaxError):  # no source has this name
        known = registry.source_info(ref.name).params
        params = tuple(pair for pair in ref.params if pair[0] in known)
    return None if params is None else Reference(ref.name, ref.body, params)


def _list_read_back(write: PlannedWrite, fields: Sequence[Field]) -> dict[str, Reference]:
    """Return where the values of a write are read, by label, as they are."""
    document = write.document
    if document is None:
        return {}
    return {
        fields[0].key if mapping.label is None else mapping.label: replace(
            document, selector=(Key(mapping.key),) if mapping.key else None
        )
        for target, mappings in write.parts
        if target.ref.param("decode") is None and not target.ref.flag("trim")
        for mapping in mappings
    }
