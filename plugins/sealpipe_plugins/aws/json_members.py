"""The members of a JSON object as its text has them, so that one is changed and all else stays as it was written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # its types leave it out
from typing import Final, NamedTuple

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


class Member(NamedTuple):
    """A member: its name, and where its value stands in the text."""

    name: str
    start: int
    end: int


def members(text: str) -> list[Member] | None:
    """The members of an object, in order; None where the text is none."""
    try:
        if not isinstance(_DECODER.decode(text), dict):
            return None
    except (ValueError, RecursionError):
        return None
    found, at = [], _after(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = scanstring(text, at + 1)
        start = _after(text, _after(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found.append(Member(name, start, end))
        at = _after(text, end)
        if text[at] == ",":
            at = _after(text, at + 1)
    return found


def value(text: str, member: Member) -> bytes:
    """A member's value as one would read it: a string's text, a number as it is spelled.

    What is neither (a list, an object, null) begins with a byte that no text has.
    """
    raw = text[member.start : member.end]
    if raw.startswith('"'):
        read: str = json.loads(raw)
        return read.encode("utf-8", "surrogatepass")
    return (b"\xff" if raw[0] in "[{n" else b"") + raw.encode("utf-8", "surrogatepass")


def with_members(text: str, values: Mapping[str, str]) -> str:
    """The text with these members: in their old places, new ones at the end."""
    found = members(text) or []
    spans = {member.name: member for member in found}
    end = found[-1].end if found else text.index("{") + 1
    new = [f"{_json(name)}: {_json(given)}" for name, given in values.items() if name not in spans]
    parts = [text[:end], ", " if found and new else "", ", ".join(new), text[end:]]
    changed = "".join(parts)
    for member in reversed(found):  # from the end, so that the places before it stay
        if member.name in values:
            changed = changed[: member.start] + _json(values[member.name]) + changed[member.end :]
    return changed


def _after(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
