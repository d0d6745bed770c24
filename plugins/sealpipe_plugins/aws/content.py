"""What AWS stores: a secret as text, bytes or the members of a JSON object, and the tag that holds the markers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]  # its types leave it out
from typing import Any, Final, NamedTuple

from sealpipe.plugin import Locator, Mode, UnsupportedError, WriteConflictError
from sealpipe_plugins.confirm import add_marker
from sealpipe_plugins.sink_values import decode_text

LARGEST: Final = 65536
"""Bytes of a secret."""

TAG: Final = "sealpipe.dev/submissions"
"""The tag that holds the markers, newest last."""
_TAG_LIMIT: Final = 256


def tags_with(markers: str, marker: str) -> list[dict[str, str]]:
    """Return the tags to write: these markers and one more."""
    return [{"Key": TAG, "Value": add_marker(markers, marker, _TAG_LIMIT)}]


def markers_in(tags: Iterable[Mapping[str, Any]] | None) -> str:
    """Return the markers that a target's tags hold; empty for none."""
    return next((str(tag.get("Value", "")) for tag in tags or () if tag.get("Key") == TAG), "")


Content = Mapping[str, Any]
"""SecretString or SecretBinary, as AWS takes and gives them."""


def next_one(content: Content, wanted: Mapping[str, bytes], mode: Mode, locator: Locator) -> Content:
    """What the next version holds, after this one (empty: the first). Raises WriteConflictError where they do not go
    together."""
    if mode != "merge" or not content:
        return content_of(None, wanted, locator)
    plain, whole = text_of(content), "" in wanted
    has_keys = plain is not None and members(plain) is not None
    if whole and has_keys:
        raise WriteConflictError(f"{locator} has keys, which the whole would replace", remedy="name a key: #KEY=PROMPT")
    if not whole and not has_keys:
        raise WriteConflictError(
            f"{locator} is a value without keys, and one cannot be added to it",
            remedy="name another secret, or store it with --mode replace",
        )
    return content_of(plain, wanted, locator)


def there_in(content: Content, *, whole: bool) -> dict[str, bytes]:
    """What a secret holds, seen as a whole or by its keys."""
    plain = text_of(content)
    found = None if whole or plain is None else members(plain)
    if found is None or plain is None:
        return {
            "": bytes(content.get("SecretBinary") or b"") if plain is None else plain.encode("utf-8", "surrogatepass")
        }
    if len({member.name for member in found}) < len(found):
        return {"": plain.encode("utf-8", "surrogatepass")}  # nobody can tell which of two is meant
    return {member.name: value(plain, member) for member in found}


def content_of(before: str | None, wanted: Mapping[str, bytes], locator: Locator) -> Content:
    """What AWS is given: the values alone, or set into the JSON object that was there."""
    if "" in wanted:
        content: Content = _whole(wanted[""], locator)
    else:
        values = {key: decode_text(data, locator) for key, data in wanted.items()}
        found = members(before or "{}") or []
        if len({member.name for member in found}) < len(found):
            raise UnsupportedError(f"{locator} is a JSON object with two members of one name", remedy="mend it first")
        content = {"SecretString": with_members(before or "{}", values)}
    (data,) = content.values()
    if len(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")) > LARGEST:
        raise UnsupportedError(
            f"{locator}: AWS keeps {LARGEST} bytes in a secret, and this is more", remedy="store it elsewhere"
        )
    return content


def _whole(data: bytes, locator: Locator) -> Content:
    if not data:
        raise UnsupportedError(f"{locator}: AWS keeps no empty secret", remedy="store it under a key: #KEY=PROMPT")
    try:
        return {"SecretString": data.decode()}
    except UnicodeDecodeError:
        return {"SecretBinary": data}


def text_of(content: Content) -> str | None:
    found = content.get("SecretString")
    return found if isinstance(found, str) else None


# By hand: the members of a JSON object as its text has them, so that one is changed and all else stays as it was
# written. A decoder and an encoder would spell numbers and blanks anew.

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
