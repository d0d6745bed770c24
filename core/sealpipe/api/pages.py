"""Pages of lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sealpipe.api.responses import read_int, read_object, read_rows
from sealpipe.errors import ProtocolError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pagination:
    """The position of a page in its list, or None (specification: Pagination object)."""

    page: int | None = None
    limit: int | None = None
    total_pages: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, newest first."""

    items: tuple[T, ...]
    pagination: Pagination


def read_page(
    members: Mapping[str, Any], name: str, item: Callable[[dict[str, Any]], T]
) -> Page[T]:
    """Return one page of a list with its rows in the member `name`, and its pagination."""
    if not isinstance(members.get(name), list):
        raise ProtocolError(f"the service's list has no array of {name}")
    paging = read_object(members, "pagination")
    pagination = (
        read_int(paging, read_figure) for read_figure in ("page", "limit", "total_pages", "total")
    )
    return Page(tuple(map(item, read_rows(members, name))), Pagination(*pagination))
