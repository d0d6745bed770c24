"""JSON as others send it, read strictly: UTF-8, no NaN or Infinity, not nested without an end."""

from __future__ import annotations

import json
from typing import Any, NoReturn

DEEPEST = 500
"""Levels: what is stored and handed on is written again, and Python's own limit lies at about a thousand calls."""


def read_json(body: bytes) -> Any:
    """The value in a body. ValueError where it is no JSON, or nested too deep."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_not_json)
    except RecursionError:
        raise ValueError("nested too deep") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [each for one in level for each in _members(one)]
        if not level:
            return value
    raise ValueError("nested too deep")


def _members(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in members if isinstance(each, (dict, list))]


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
