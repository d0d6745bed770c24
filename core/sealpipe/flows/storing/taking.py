"""What a target takes out of fields: the values under our own keys. Pure.

The fields may be a stranger's: whatever of them does not fit is a `MisfitError`, whose text holds our names only.
"""

from __future__ import annotations

from collections.abc import Sequence

from sealpipe.errors import PluginError
from sealpipe.flows.storing.targets import REQUEST, Pick, Source, Target
from sealpipe.flows.values import decoded, trimmed
from sealpipe.plugin import Stored
from sealpipe.secret import Secret
from sealpipe.wire.field import Field, revealed


class MisfitError(Exception):
    """What was submitted does not answer what a target takes. The text says how, and never shows any of it."""


def take(target: Target, picks: Sequence[Pick], fields: Sequence[Field], source: Source = REQUEST) -> list[Stored]:
    """The values that go there; optional ones that are missing or empty are left out. Raises MisfitError."""
    taken: list[Stored] = []
    for pick in picks:
        value = _value(target, pick, fields, source)
        if value is not None:
            taken.append(Stored(pick.key, value))
    return taken


def _value(target: Target, pick: Pick, fields: Sequence[Field], source: Source) -> Secret | None:
    values = _matching(pick, fields)
    optional = target.ref.flag("optional")
    if not values and not optional:
        raise MisfitError(f"it has no answer to {pick.name}")
    if len(values) > 1:
        raise MisfitError(f"{source.twice} {pick.name} more than once, and differently")
    value: str | bytes = values[0] if values else ""
    how = target.ref.param("decode")
    misfit = ""
    try:
        if how and value:
            value = decoded(value, how, pick.name)
        if target.ref.flag("trim"):
            value = trimmed(value)
    except PluginError:
        misfit = f"{source.value} {pick.name} is not {how}"
    if misfit:
        raise MisfitError(misfit)
    if value:
        return Secret(value)
    if optional:
        return None
    raise MisfitError(f"{source.value} {pick.name} is empty")


def _matching(pick: Pick, fields: Sequence[Field]) -> list[str]:
    """The values that a pick may mean; one that is there twice, alike, is one."""
    if pick.label is None:
        if len(fields) != 1:
            raise MisfitError(f"it has {len(fields)} fields where the target takes one")
        found = list(fields)
    else:
        found = [field for field in fields if field.key == pick.label]
    return list(dict.fromkeys(revealed(field) for field in found))
