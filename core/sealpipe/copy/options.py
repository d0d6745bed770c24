"""Plan a copy, before anything is read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple

from sealpipe.errors import UsageError
from sealpipe.plugin import Mode
from sealpipe.reference import FieldSpec, Reference
from sealpipe.requirements import Need
from sealpipe.sinks.targets import SinkTarget, parse_targets


class CopyJob(NamedTuple):
    """What to copy, and where: checked and parsed."""

    fields: tuple[FieldSpec, ...]
    targets: tuple[SinkTarget, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources and sinks that it uses."""
        sources = (("source", each.ref.name) for each in self.fields)
        return (*sources, *(("sink", each.ref.name) for each in self.targets))

    @property
    def name(self) -> str:
        """Its name, the same for the same references and targets.

        The mode is no part of it: a rerun may have another.
        """
        texts = [
            *(f"{each.label}={each.ref}" for each in self.fields),
            "--to",
            *(str(_without_mode(each.ref)) for each in self.targets),
        ]
        return sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def plan_copy(
    fields: Sequence[FieldSpec], to: Iterable[str | Reference], mode: Mode = "create"
) -> CopyJob:
    """Plan a copy. Raises UsageError."""
    if not fields:
        raise UsageError("nothing to copy", remedy="name a value: vault:secret/app#password")
    targets = parse_targets(to, mode)
    if not targets:
        raise UsageError("the copy has no target", remedy="add --to SINK")
    return CopyJob(tuple(fields), tuple(targets))


def _without_mode(ref: Reference) -> Reference:
    return replace(ref, params=tuple(pair for pair in ref.params if pair[0] != "mode"))
