"""The contents of a 1Password item: fields, in sections or without, and files. No I/O."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sealpipe.plugin import ReferenceValueError, SecretNotFoundError

MARKER: Final = "sealpipe"
"""The field that holds the markers of stored submissions; it is no value of the item."""


class ItemPart(NamedTuple):
    """A field or a file: the names that a reference may use for it, and for its section.

    `file` is a file's id.
    """

    names: tuple[str, ...]
    section: tuple[str, ...]
    value: str = ""
    file: str = ""

    @property
    def key(self) -> str:
        """Its key in a map of the whole item: the last part of a reference."""
        return "/".join([*self.section[-1:], self.names[-1]])


def parse_item(item: Mapping[str, Any]) -> list[ItemPart]:
    """Return fields and files, in order. Malformed ones are skipped."""
    sections = {each.get("id"): _get_names(each, "label") for each in _get_list(item, "sections")}

    def make_part(each: Mapping[str, Any], name: str, **more: str) -> ItemPart:
        section = each.get("section")
        parts = section.get("id") if isinstance(section, dict) else None
        return ItemPart(
            _get_names(each, name),
            sections.get(parts, (parts,) if isinstance(parts, str) else ()),
            **more,
        )

    fields = [
        make_part(each, "label", value=_get_text(each, "value"))
        for each in _get_list(item, "fields")
    ]
    files = [
        make_part(each, "name", file=_get_text(each, "id")) for each in _get_list(item, "files")
    ]
    return [part for part in fields + files if part.names]


def choose_part(parts: Sequence[ItemPart], path: Sequence[str]) -> ItemPart:
    """Return the part that `field` or `section/field` names.

    Raises SecretNotFoundError, ReferenceValueError.
    """
    *section, name = path
    matches = [
        part for part in parts if name in part.names and (not section or section[0] in part.section)
    ]
    if not section and len(matches) > 1:
        matches = [part for part in matches if not part.section] or matches
    if len(matches) > 1:
        raise ReferenceValueError(
            f"{len(matches)} fields of the item have that name",
            remedy="write Vault/Item/section/field, or their ids",
        )
    if matches:
        return matches[0]
    if section and not any(section[0] in part.section for part in parts):
        raise SecretNotFoundError(
            "the item has no section with that name", remedy="check the section's name or id"
        )
    raise SecretNotFoundError("the item has no such field", remedy="check the field's name or id")


def all_values(parts: Sequence[ItemPart]) -> dict[str, str]:
    """Return all non-empty fields but the marker, by `field` or `section/field`.

    Of two with a name, the first wins.
    """
    values: dict[str, str] = {}
    for part in parts:
        if part.value and not part.file and part.key != MARKER:
            values.setdefault(part.key, part.value)
    return values


def new_id() -> str:
    """Return an id for a field or a section, in 1Password's form: 26 small letters and digits."""
    return base64.b32encode(secrets.token_bytes(17)).decode().lower()[:26]


def _get_list(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    members = item.get(name)
    return [each for each in members if isinstance(each, dict)] if isinstance(members, list) else []


def _get_names(each: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return its id and its name, the name last."""
    return tuple(text for text in (_get_text(each, "id"), _get_text(each, name)) if text)


def _get_text(each: Mapping[str, Any], name: str) -> str:
    value = each.get(name)
    return value if isinstance(value, str) else ""
