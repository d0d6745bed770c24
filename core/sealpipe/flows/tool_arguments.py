"""Texts that references gave, as the JSON types that a tool's schema says. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from sealpipe.api.refusals import printable
from sealpipe.errors import UsageError
from sealpipe.secret import Secret

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)


def typed(values: Mapping[str, Secret], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool. What the schema says nothing of stays text.

    UsageError names the argument that is not what it should be, never its value.
    """
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return {name: _typed(name, value.reveal(), known.get(name)) for name, value in values.items()}


def _typed(name: str, text: str, schema: object) -> Any:
    wanted = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = wanted if isinstance(wanted, list) else [wanted]
    readers = [_READERS[kind] for kind in kinds if isinstance(kind, str) and kind in _READERS]
    if "string" in kinds or not readers:
        return text
    for _, read in readers:
        value = read(text)
        if value is not None:
            return value
    raise UsageError(
        f"the argument {printable(name, 100)} is not {' or '.join(what for what, _ in readers)}",
        remedy="see `sealpipe tools list --output json` for what the tool takes",
    )


def _whole(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _number(text: str) -> Any:
    return json.loads(text) if _NUMBER.fullmatch(text) else None


def _json(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, kind) else None

    return read


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "integer": ("a whole number", _whole),
    "number": ("a number", _number),
    "boolean": ("true or false", {"true": True, "false": False}.get),
    "array": ("a list in JSON", _json(list)),
    "object": ("an object in JSON", _json(dict)),
}
