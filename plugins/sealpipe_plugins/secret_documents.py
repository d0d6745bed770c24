"""A secret as a document: text whose JSON object has keys, any other text, or bytes.

Used by stores that hold one value in a secret, and by their users as a JSON object with several.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing from the type stubs
from typing import Final, NamedTuple

from sealpipe.plugin import (
    Document,
    Locator,
    Mode,
    ReferenceValueError,
    SinkField,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.sink_values import decode_text, values_by_key

Stored = str | bytes
"""The content of a secret: bytes if it is not text."""


def make_source_document(stored: Stored, locator: Locator) -> Document:
    """Return the document of a source whose references have the parameter `raw`.

    An object is parsed without raw=1.
    """
    raw = locator.param("raw", "0")
    if raw not in ("0", "1"):
        raise ReferenceValueError(
            f"{locator}: raw= must be 0 or 1", remedy="raw=1 returns the secret's text unchanged"
        )
    is_object = (
        raw == "0"
        and isinstance(stored, str)
        and stored.lstrip().startswith("{")
        and _is_object(stored)
    )
    return Document(stored, format="json" if is_object else "")


def document_values(fields: Sequence[SinkField], locator: Locator) -> dict[str, bytes]:
    """Return the values to store, by key; the only one under an empty key is the whole secret."""
    wanted = values_by_key(fields, locator)
    if "" in wanted and len(wanted) > 1:
        raise ReferenceValueError(
            f"{locator}: values with and without a key cannot be mixed",
            remedy="give each value a key, or none",
        )
    return wanted


def next_document(
    stored: Stored | None, wanted: Mapping[str, bytes], mode: Mode, locator: Locator
) -> Stored:
    """Return the content of the next version, made from the current one (None: none).

    Raises WriteConflictError if the values cannot be merged into the stored content.
    """
    if mode != "merge" or stored is None:
        return make_document(None, wanted, locator)
    whole, has_keys = "" in wanted, isinstance(stored, str) and _is_object(stored)
    if whole and has_keys:
        raise WriteConflictError(
            f"{locator} has keys, which a value without a key would replace",
            remedy="name a key: #KEY=PROMPT",
        )
    if not whole and not has_keys:
        raise WriteConflictError(
            f"{locator} has a value without keys, so a key cannot be added",
            remedy="name another secret, or store it with --mode replace",
        )
    return make_document(stored if isinstance(stored, str) else None, wanted, locator)


def make_document(text: str | None, wanted: Mapping[str, bytes], locator: Locator) -> Stored:
    """Return what to store.

    The value alone, or the values set into the JSON object `text` (None: a new one).
    """
    if "" in wanted:
        return as_stored(wanted[""])
    values = {key: decode_text(data, locator) for key, data in wanted.items()}
    existing_members = find_members(text or "{}") or []
    if len({member.name for member in existing_members}) < len(existing_members):
        raise UnsupportedError(
            f"{locator} is a JSON object with two members of the same name", remedy="fix it first"
        )
    return set_members(text or "{}", values)


def read_values(stored: Stored, *, whole: bool) -> dict[str, bytes]:
    """Return a secret's values.

    The whole content under an empty key, or each member under its key.
    """
    existing_members = None if whole or isinstance(stored, bytes) else find_members(stored)
    if existing_members is None or isinstance(stored, bytes):
        return {"": as_bytes(stored)}
    if len({member.name for member in existing_members}) < len(existing_members):
        return {"": as_bytes(stored)}  # ambiguous: two members have the same name
    return {member.name: decode_member(stored, member) for member in existing_members}


def as_stored(data: bytes) -> Stored:
    """Return text, or the bytes if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def as_bytes(stored: Stored) -> bytes:
    """Return the bytes of a secret's content."""
    return stored if isinstance(stored, bytes) else stored.encode("utf-8", "surrogatepass")


def _is_object(text: str) -> bool:
    return find_members(text) is not None


# A parser that keeps each member's text, so that one member changes and everything else stays as
# written. Decoding and encoding would change the spelling of numbers and white space.

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


class Member(NamedTuple):
    """A member: its name, and the position of its value in the text."""

    name: str
    start: int
    end: int


def find_members(text: str) -> list[Member] | None:
    """Return the members of an object, in order; None if the text is not an object."""
    try:
        if not isinstance(_DECODER.decode(text), dict):
            return None
    except (ValueError, RecursionError):
        return None
    members, at = [], _skip_blanks(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        start = _skip_blanks(text, _skip_blanks(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        members.append(Member(name, start, end))
        at = _skip_blanks(text, end)
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)
    return members


def decode_member(text: str, member: Member) -> bytes:
    """Return a member's value: a string's text, or a number as it is spelled.

    Any other value (a list, an object, null) begins with a byte that text never has.
    """
    raw = text[member.start : member.end]
    if raw.startswith('"'):
        read: str = json.loads(raw)
        return read.encode("utf-8", "surrogatepass")
    return (b"\xff" if raw[0] in "[{n" else b"") + raw.encode("utf-8", "surrogatepass")


def adopt_members(
    stored: Stored, theirs: Stored, base: Stored | None, kept: Collection[str]
) -> Stored:
    """Return an object with the members, as they are written, that another made from `base` has.

    Not those that `base` has, too (None: it has none), nor the names that are `kept`. What is no
    object is neither changed nor adopted.
    """
    if isinstance(stored, bytes) or find_members(stored) is None or isinstance(theirs, bytes):
        return stored
    before = {} if base is None else read_values(base, whole=False)
    changed = {
        member.name: theirs[member.start : member.end]
        for member in find_members(theirs) or ()
        if member.name not in kept and before.get(member.name) != decode_member(theirs, member)
    }
    return _set_members(stored, changed)


def set_members(text: str, values: Mapping[str, str]) -> str:
    """Return the text with these members: existing ones in their positions, new ones at the end."""
    return _set_members(text, {name: _encode_text(value) for name, value in values.items()})


def _set_members(text: str, values: Mapping[str, str]) -> str:
    """Return the text with these members, whose values are JSON."""
    existing_members = find_members(text) or []
    spans = {member.name: member for member in existing_members}
    end = existing_members[-1].end if existing_members else text.index("{") + 1
    new = [
        f"{_encode_text(name)}: {new_value}"
        for name, new_value in values.items()
        if name not in spans
    ]
    parts = [text[:end], ", " if existing_members and new else "", ", ".join(new), text[end:]]
    changed = "".join(parts)
    for member in reversed(existing_members):  # from the end, so that earlier positions stay valid
        if member.name in values:
            changed = changed[: member.start] + values[member.name] + changed[member.end :]
    return changed


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _encode_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
