"""What an item of 1Password holds: fields, in sections or without, and files. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sealpipe.plugin import ReferenceValueError, SecretNotFoundError


class Part(NamedTuple):
    """A field or a file: the names that a reference may call it, and its section's. `file` is a file's id."""

    names: tuple[str, ...]
    section: tuple[str, ...]
    value: str = ""
    file: str = ""

    @property
    def key(self) -> str:
        """Its name in a map of the whole item, as a reference would end."""
        return "/".join([*self.section[-1:], self.names[-1]])


def parts(item: Mapping[str, Any]) -> list[Part]:
    """Fields and files, in their order. What has not the form of one is left out."""
    sections = {each.get("id"): _names(each, "label") for each in _list(item, "sections")}

    def of(each: Mapping[str, Any], name: str, **more: str) -> Part:
        section = each.get("section")
        found = section.get("id") if isinstance(section, dict) else None
        return Part(_names(each, name), sections.get(found, (found,) if isinstance(found, str) else ()), **more)

    fields = [of(each, "label", value=_text(each, "value")) for each in _list(item, "fields")]
    files = [of(each, "name", file=_text(each, "id")) for each in _list(item, "files")]
    return [part for part in fields + files if part.names]


def chosen(found: Sequence[Part], path: Sequence[str]) -> Part:
    """The one that `field` or `section/field` means, by id or name. Raises SecretNotFoundError, ReferenceValueError."""
    *section, name = path
    fitting = [p for p in found if name in p.names and (not section or section[0] in p.section)]
    if not section and len(fitting) > 1:
        fitting = [p for p in fitting if not p.section] or fitting
    if len(fitting) > 1:
        raise ReferenceValueError(
            f"{len(fitting)} fields of the item have that name", remedy="write Vault/Item/section/field, or their ids"
        )
    if fitting:
        return fitting[0]
    if section and not any(section[0] in p.section for p in found):
        raise SecretNotFoundError("the item has no section of that name", remedy="check the section's name or id")
    raise SecretNotFoundError("the item has no field of that name there", remedy="check the field's name or id")


def whole(found: Sequence[Part]) -> dict[str, str]:
    """All fields that hold something, by `field` or `section/field`. The first of two with one name counts."""
    values: dict[str, str] = {}
    for part in found:
        if part.value and not part.file:
            values.setdefault(part.key, part.value)
    return values


def _list(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    members = item.get(name)
    return [each for each in members if isinstance(each, dict)] if isinstance(members, list) else []


def _names(each: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Its id and its name, the name last."""
    return tuple(text for text in (_text(each, "id"), _text(each, name)) if text)


def _text(each: Mapping[str, Any], name: str) -> str:
    value = each.get(name)
    return value if isinstance(value, str) else ""
