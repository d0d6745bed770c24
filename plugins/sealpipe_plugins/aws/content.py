"""What AWS stores: a secret as text, bytes or the members of a JSON object, and the tag that holds the markers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # missing from the type stubs
from typing import Any, Final, NamedTuple

from sealpipe.plugin import Locator, Mode, UnsupportedError, WriteConflictError
from sealpipe_plugins.confirm import add_marker
from sealpipe_plugins.sink_values import decode_text

MAX_SIZE: Final = 65536
"""Maximum bytes of a secret."""

TAG: Final = "sealpipe.dev/submissions"
"""The tag that holds the markers, newest last."""
_TAG_LIMIT: Final = 256


def tags_with(markers: str, marker: str) -> list[dict[str, str]]:
    """Return the tags to write: these markers and one more."""
    return [{"Key": TAG, "Value": add_marker(markers, marker, _TAG_LIMIT)}]


def markers_in(tags: Iterable[Mapping[str, Any]] | None) -> str:
    """Return the markers in a target's tags; an empty string if there are none."""
    return next((str(tag.get("Value", "")) for tag in tags or () if tag.get("Key") == TAG), "")


Content = Mapping[str, Any]
"""SecretString or SecretBinary, as in AWS's API."""


def next_content(content: Content, wanted: Mapping[str, bytes], mode: Mode, locator: Locator) -> Content:
    """Return the content of the next version, made from the current one (empty: none).

    Raises WriteConflictError if the values cannot be merged into the stored content.
    """
    if mode != "merge" or not content:
        return make_content(None, wanted, locator)
    existing, whole = get_text(content), "" in wanted
    has_keys = existing is not None and find_members(existing) is not None
    if whole and has_keys:
        raise WriteConflictError(
            f"{locator} has keys, which a value without a key would replace", remedy="name a key: #KEY=PROMPT"
        )
    if not whole and not has_keys:
        raise WriteConflictError(
            f"{locator} has a value without keys, so a key cannot be added",
            remedy="name another secret, or store it with --mode replace",
        )
    return make_content(existing, wanted, locator)


def read_values(content: Content, *, whole: bool) -> dict[str, bytes]:
    """Return a secret's values: the whole text under an empty key, or each member under its key."""
    existing = get_text(content)
    existing_members = None if whole or existing is None else find_members(existing)
    if existing_members is None or existing is None:
        return {
            "": bytes(content.get("SecretBinary") or b"")
            if existing is None
            else existing.encode("utf-8", "surrogatepass")
        }
    if len({member.name for member in existing_members}) < len(existing_members):
        return {"": existing.encode("utf-8", "surrogatepass")}  # ambiguous: two members have the same name
    return {member.name: decode_member(existing, member) for member in existing_members}


def make_content(existing_text: str | None, wanted: Mapping[str, bytes], locator: Locator) -> Content:
    """Return what AWS is to store: the values alone, or set into the existing JSON object."""
    if "" in wanted:
        content: Content = _whole_content(wanted[""], locator)
    else:
        values = {key: decode_text(data, locator) for key, data in wanted.items()}
        existing_members = find_members(existing_text or "{}") or []
        if len({member.name for member in existing_members}) < len(existing_members):
            raise UnsupportedError(
                f"{locator} is a JSON object with two members of the same name", remedy="fix it first"
            )
        content = {"SecretString": set_members(existing_text or "{}", values)}
    (data,) = content.values()
    if len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")) > MAX_SIZE:
        raise UnsupportedError(
            f"{locator}: AWS stores at most {MAX_SIZE} bytes in a secret", remedy="store it elsewhere"
        )
    return content


def _whole_content(data: bytes, locator: Locator) -> Content:
    if not data:
        raise UnsupportedError(
            f"{locator}: AWS does not store empty secrets", remedy="store it under a key: #KEY=PROMPT"
        )
    try:
        return {"SecretString": data.decode()}
    except UnicodeDecodeError:
        return {"SecretBinary": data}


def get_text(content: Content) -> str | None:
    existing_members = content.get("SecretString")
    return existing_members if isinstance(existing_members, str) else None


# A parser that keeps each member's text, so that one member changes and everything else stays as written. Decoding and
# encoding would change the spelling of numbers and white space.

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


def set_members(text: str, values: Mapping[str, str]) -> str:
    """Return the text with these members: existing ones in their positions, new ones at the end."""
    existing_members = find_members(text) or []
    spans = {member.name: member for member in existing_members}
    end = existing_members[-1].end if existing_members else text.index("{") + 1
    new = [
        f"{_encode_text(name)}: {_encode_text(new_value)}" for name, new_value in values.items() if name not in spans
    ]
    parts = [text[:end], ", " if existing_members and new else "", ", ".join(new), text[end:]]
    changed = "".join(parts)
    for member in reversed(existing_members):  # from the end, so that earlier positions stay valid
        if member.name in values:
            changed = changed[: member.start] + _encode_text(values[member.name]) + changed[member.end :]
    return changed


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _encode_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
