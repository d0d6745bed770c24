"""The entries of a KeePass database: the XML in it, as KeePass documents it for KDBX 4. No I/O.

The text of a field is in clear here: pykeepass encrypts and decrypts what is marked as protected.
"""

from __future__ import annotations

import base64
import re
import struct
import uuid
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree
from lxml.builder import E

TITLE: Final = "Title"
MARKER: Final = "sealpipe"
"""The field that holds the markers of stored submissions."""

_STANDARD: Final = {name.lower(): name for name in ("Password", "UserName", "URL", "Notes", TITLE)}
_IN_CLEAR: Final = frozenset({"UserName", "URL", "Notes", MARKER})
"""Fields that are not marked as protected when they are new, as in KeePass."""
_UNWRITABLE: Final = re.compile("[^\\t\\n\\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)


def canonical_name(name: str) -> str:
    """Return a field's name.

    KeePass's own fields in its spelling, in whichever case they are written.
    """
    return _STANDARD.get(name.lower(), name)


def is_standard(name: str) -> bool:
    """Return whether a field is one of KeePass's own."""
    return name in _STANDARD.values()


def is_writable(text: str) -> bool:
    """Return whether XML, and so a database, can hold a text."""
    return _UNWRITABLE.search(text) is None


class EntryFields(Mapping[str, "str | bytes"]):
    """What an entry holds, for selectors.

    All its fields are listed but empty ones; attachments are found by name. A name is first
    taken as it is written: an entry may have a field `TITLE` beside its title.
    """

    def __init__(self, fields: Mapping[str, str], files: Mapping[str, bytes]) -> None:
        self._fields = {
            name: value for name, value in fields.items() if name not in (TITLE, MARKER)
        }
        self._files = files

    def __getitem__(self, name: str) -> str | bytes:
        for known in (name, canonical_name(name)):
            if known in self._fields:
                return self._fields[known]
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in self._fields.items() if value)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def index_entries(tree: Any) -> dict[str, list[Any]]:
    """Return the entries by path.

    The groups below the root and the title, with slashes between them.
    """
    found: dict[str, list[Any]] = {}
    for path, entry in _walk(_find_root(tree), ""):
        found.setdefault(path, []).append(entry)
    return found


def list_ids(tree: Any) -> set[str]:
    """Return the ids of all groups and entries. What an entry was has the entry's id."""
    return {element.findtext("UUID") or "" for element in _find_root(tree).iter("Group", "Entry")}


def read_fields(entry: Any) -> dict[str, str]:
    """Return an entry's fields by name."""
    return {
        each.findtext("Key") or "": each.findtext("Value") or "" for each in entry.findall("String")
    }


def read_file_numbers(entry: Any) -> dict[str, int]:
    """Return the attachments of an entry by name, as numbers of the database's binaries."""
    numbers = {
        each.findtext("Key") or "": each.find("Value").get("Ref") or ""
        for each in entry.findall("Binary")
    }
    return {name: int(number) for name, number in numbers.items() if number.isdecimal()}


def list_file_numbers(tree: Any) -> set[int]:
    """Return the numbers of all binaries that an entry has, or had, as an attachment."""
    found = (each.get("Ref") or "" for each in _find_root(tree).iterfind(".//Binary/Value"))
    return {int(number) for number in found if number.isdecimal()}


def add_entry(tree: Any, path: str) -> Any:
    """Make an entry without fields, and the groups on its path that are missing.

    Returns the entry.
    """
    *names, title = path.split("/")
    group = _find_root(tree)
    for name in names:
        below = next(
            (each for each in group.findall("Group") if each.findtext("Name") == name), None
        )
        if below is None:
            below = E.Group(
                E.UUID(_new_id()), E.Name(name), E.IconID("48"), _new_times(), E.IsExpanded("True")
            )
            group.append(below)
        group = below
    entry = E.Entry(E.UUID(_new_id()), E.IconID("0"), _new_times())
    _set_field(entry, TITLE, title)
    first_group = group.find("Group")  # entries come before groups
    if first_group is None:
        group.append(entry)
    else:
        first_group.addprevious(entry)
    return entry


def save_history(tree: Any, entry: Any) -> None:
    """Keep an entry's present state in its history, with as many items as the database wants."""
    copy = deepcopy(entry)
    for nested in copy.findall("History"):
        copy.remove(nested)
    history = entry.find("History")
    if history is None:
        history = etree.SubElement(entry, "History")
    history.append(copy)
    limit = tree.getroot().findtext("Meta/HistoryMaxItems") or "-1"
    if limit.isdecimal():
        for old in history.findall("Entry")[: -int(limit) or None]:
            history.remove(old)


def set_fields(entry: Any, fields: Mapping[str, str]) -> None:
    """Set fields, and remove all others that hold something, but the title."""
    for each in entry.findall("String"):
        if each.findtext("Value") and (each.findtext("Key") or "") not in {*fields, TITLE}:
            entry.remove(each)
    for name, value in fields.items():
        _set_field(entry, name, value)
    for name in ("LastModificationTime", "LastAccessTime"):
        time = entry.find(f"Times/{name}")
        if time is not None:
            time.text = _now()


def set_file(entry: Any, name: str, number: int) -> None:
    """Make a binary of the database the attachment of that name, in place of a field."""
    for each in (*entry.findall("Binary"), *entry.findall("String")):
        if each.findtext("Key") == name:
            entry.remove(each)
    _add_part(entry, E.Binary(E.Key(name), E.Value(Ref=str(number))))


def _set_field(entry: Any, name: str, value: str) -> None:
    for each in entry.findall("String"):
        if each.findtext("Key") == name:
            each.find("Value").text = value
            return
    protection = {} if name in (*_IN_CLEAR, TITLE) else {"Protected": "True"}
    _add_part(entry, E.String(E.Key(name), E.Value(value, **protection)))


def _add_part(entry: Any, part: Any) -> None:
    history = entry.find("History")
    if history is None:
        entry.append(part)
    else:
        history.addprevious(part)


def _walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for entry in group.findall("Entry"):
        yield prefix + _read_title(entry), entry
    for below in group.findall("Group"):
        yield from _walk(below, f"{prefix}{below.findtext('Name') or ''}/")


def _read_title(entry: Any) -> str:
    return next(
        (
            each.findtext("Value") or ""
            for each in entry.iterfind("String")
            if each.findtext("Key") == TITLE
        ),
        "",
    )


def _find_root(tree: Any) -> Any:
    return tree.getroot().find("Root/Group")


def _new_id() -> str:
    return base64.b64encode(uuid.uuid4().bytes).decode()


def _new_times() -> Any:
    names = (
        "CreationTime",
        "LastModificationTime",
        "LastAccessTime",
        "ExpiryTime",
        "LocationChanged",
    )
    now = _now()
    return E.Times(*(E(name, now) for name in names), E.Expires("False"), E.UsageCount("0"))


def _now() -> str:
    """Return the time as KDBX 4 has it: seconds since the year 1, in base64."""
    return base64.b64encode(
        struct.pack("<Q", int((datetime.now(UTC) - _YEAR_ONE).total_seconds()))
    ).decode()
