"""What changes in a 1Password item when values are stored. No I/O.

Values go by the keys of the target: a field's name or id, after `section/` if it is in one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import ReferenceValueError, SecretNotFoundError, UnsupportedError
from sealpipe_plugins.confirm import Snapshot
from sealpipe_plugins.onepassword.items import MARKER, ItemPart, choose_part, parse_item

BUILT_IN: Final = ("username", "password")
"""Fields of a login that 1Password itself fills in; their ids are their names."""

_FIXED: Final = (*BUILT_IN, "notesPlain")
"""Ids of fields that an item of their category always has."""


class NewField(NamedTuple):
    """A field to add; `section` is the name of a section, or its id if the item exists."""

    label: str
    value: str
    section: str = ""


class Changes(NamedTuple):
    """What to do with an item's fields: new values by id, fields to add, and ids to remove."""

    values: Mapping[str, str]
    added: tuple[NewField, ...]
    removed: tuple[str, ...]


def read_item(item: Mapping[str, Any], keys: Collection[str]) -> Snapshot:
    """Return an item's values, for a write to `keys`.

    Raises ReferenceValueError (ambiguous key), UnsupportedError.
    """
    parts = _map_parts(item, keys)
    values = {key: part.value.encode() for key, part in parts.items() if part.value or key in keys}
    version = item.get("version")
    return Snapshot(
        values, str(version) if isinstance(version, int) else "", _find_marker(item).value, raw=item
    )


def plan_item(values: Mapping[str, bytes], markers: str) -> list[NewField]:
    """Return the fields of a new item."""
    return [*(_new_field(key, value) for key, value in values.items()), NewField(MARKER, markers)]


def plan_changes(
    item: Mapping[str, Any], keys: Collection[str], after: Mapping[str, bytes], markers: str
) -> Changes:
    """Return the changes after which an item holds exactly `after`.

    Raises UnsupportedError for a missing section.
    """
    parts, marker = _map_parts(item, keys), _find_marker(item)
    values = {
        parts[key].names[0]: value.decode()
        for key, value in after.items()
        if key in parts and parts[key].value.encode() != value
    }
    added = [
        _in_section(item, _new_field(key, value))
        for key, value in after.items()
        if key not in parts
    ]
    kept = {parts[key].names[0] for key in after if key in parts}
    keys_after = {parts[key].key for key in after if key in parts}
    removed: list[str] = []
    for part in _list_fields(item):
        number = part.names[0]
        if not part.value or number in kept or part.key in keys_after:
            continue
        if number in _FIXED:
            values[number] = ""
        else:
            removed.append(number)
    if marker.names:
        values[marker.names[0]] = markers
    else:
        added.append(NewField(MARKER, markers))
    return Changes(values, tuple(added), tuple(removed))


def check_key(key: str, where: object) -> None:
    """Raise ReferenceValueError if a key cannot name a field."""
    if not key or key == MARKER or not all(key.split("/")) or key.count("/") > 1:
        raise ReferenceValueError(
            f"{where}: {key!a} cannot name a field",
            remedy="write op://Vault/Item#field=PROMPT, or section/field",
        )


def _list_fields(item: Mapping[str, Any]) -> list[ItemPart]:
    return [part for part in parse_item(item) if not part.file and part.key != MARKER]


def _map_parts(item: Mapping[str, Any], keys: Collection[str]) -> dict[str, ItemPart]:
    """Return the fields by key: those that `keys` name by these, all others by their own.

    The first one wins.
    """
    parts: dict[str, ItemPart] = {}
    for key in keys:
        try:
            part = choose_part(parse_item(item), key.split("/"))
        except SecretNotFoundError:
            continue
        if part.file:
            raise UnsupportedError(
                f"{key!a} is a file of the item, which is not replaced", remedy="name another field"
            )
        if part in parts.values():
            raise ReferenceValueError("two keys name the same field", remedy="name each field once")
        parts[key] = part
    named = list(parts.values())
    for part in _list_fields(item):
        if part not in named:
            parts.setdefault(part.key, part)
    return parts


def _find_marker(item: Mapping[str, Any]) -> ItemPart:
    return next(
        (part for part in parse_item(item) if part.key == MARKER and not part.file),
        ItemPart((), ()),
    )


def _new_field(key: str, value: bytes) -> NewField:
    section, _, label = key.rpartition("/")
    return NewField(label, value.decode(), section)


def _in_section(item: Mapping[str, Any], field: NewField) -> NewField:
    """Return a field with the id of its section instead of the name."""
    if not field.section:
        return field
    sections = item.get("sections") or ()
    found = [
        each["id"]
        for each in sections
        if field.section in (each.get("id"), each.get("label")) and each.get("id")
    ]
    if found:
        return field._replace(section=found[0])
    raise UnsupportedError(
        "the item has no section of that name", remedy="add the section in 1Password first"
    )
