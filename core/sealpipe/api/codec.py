"""JSON bodies: read strictly, because the answer is untrusted (DESIGN 6.8), and written to the exact same bytes.

Every reader raises ProtocolError for a value of another type than the one it reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sealpipe.api import Response
from sealpipe.errors import ProtocolError, UsageError
from sealpipe.values import parse_time

if TYPE_CHECKING:
    from sealpipe.api.models import Page

T = TypeVar("T")


def parse_object(answer: Response) -> dict[str, Any]:
    """The body as a JSON object. NaN, duplicate members and endless nesting are refused."""
    if answer.flaw:
        raise ProtocolError(f"the service's answer {answer.flaw}", status=answer.status)
    try:
        # As UTF-8 and nothing else: json would read UTF-16, too, where nothing has redacted our credential.
        text = str(answer.body, "utf-8-sig")
        value = json.loads(text, parse_constant=_refuse, parse_float=_parse_finite, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        raise ProtocolError("the service's answer is not JSON", status=answer.status) from None
    if not isinstance(value, dict):
        raise ProtocolError("the service's answer is not a JSON object", status=answer.status)
    return value


def read_short_code(members: Mapping[str, Any]) -> str:
    """An opaque short code: never empty, `.` or `..`, and without control characters."""
    value = members.get("short_code")
    if not isinstance(value, str) or value in ("", ".", "..") or not value.isprintable():
        raise ProtocolError("the service's answer has no usable short code")
    return value


def read_time(members: Mapping[str, Any], name: str) -> datetime | None:
    """An RFC 3339 time, or None for null or absent."""
    value = members.get(name)
    if value is None:
        return None
    try:
        return parse_time(value)
    except (TypeError, UsageError):
        raise ProtocolError(f"the service's answer has a {name} that is not a time") from None


def read_text(members: Mapping[str, Any], name: str) -> str | None:
    """A string, or None for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"the service's answer has a {name} that is not text")
    return value


def read_int(members: Mapping[str, Any], name: str) -> int | None:
    """A whole number, or None for null or absent."""
    value = members.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ProtocolError(f"the service's answer has a {name} that is not an integer")
    return value


def read_bool(members: Mapping[str, Any], name: str) -> bool | None:
    """True or false, or None for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, bool):
        raise ProtocolError(f"the service's answer has a {name} that is neither true nor false")
    return value


def read_object(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object's members; none for null or absent."""
    value = members.get(name)
    if value is not None and not isinstance(value, dict):
        raise ProtocolError(f"the service's answer has a {name} that is not an object")
    return value or {}


def read_rows(members: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """An array of objects; empty for null or absent."""
    value = members.get(name)
    if value is not None and (not isinstance(value, list) or not all(isinstance(row, dict) for row in value)):
        raise ProtocolError(f"the service's answer has a {name} that is not an array of objects")
    return value or []


def read_page(members: Mapping[str, Any], name: str, item: Callable[[dict[str, Any]], T]) -> Page[T]:
    """One page of a list whose rows stand under `name`; the figures of its pagination where there are any."""
    from sealpipe.api.models import Page, Pagination  # most commands list nothing

    if not isinstance(members.get(name), list):
        raise ProtocolError(f"the service's list has no array of {name}")
    paging = read_object(members, "pagination")
    pagination = (read_int(paging, read_figure) for read_figure in ("page", "limit", "total_pages", "total"))
    return Page(tuple(map(item, read_rows(members, name))), Pagination(*pagination))


def select_unknown(members: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """The members that we do not know, kept as they are."""
    return {name: value for name, value in members.items() if name not in known}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _parse_finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)  # 1e999: JSON could not say it again


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands twice")
    return members


def dump(members: Mapping[str, object]) -> bytes:
    """The members that are not None, as a browser's JSON.stringify writes them. UsageError for half a character."""
    present = {name: value for name, value in members.items() if value is not None}
    try:
        return json.dumps(present, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        pass
    raise UsageError(
        "a title, description or other text in clear contains a lone surrogate",
        remedy="give it as UTF-8 text",
    )
