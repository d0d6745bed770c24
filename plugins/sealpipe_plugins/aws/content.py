"""What a secret of AWS Secrets Manager holds: a text, bytes, or the members of a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sealpipe.plugin import Locator, Mode, UnsupportedError, WriteConflictError
from sealpipe_plugins.aws.json_members import members, value, with_members
from sealpipe_plugins.sink_values import decode_text

LARGEST: Final = 65536
"""Bytes of a secret."""

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
