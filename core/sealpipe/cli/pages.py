"""The lists that come in pages: one page, or all of them, as lines or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from sealpipe.cli import render

if TYPE_CHECKING:
    from sealpipe.api.models import Page

T = TypeVar("T")

_FIGURES = ("page", "limit", "total_pages", "total")


def fetch(
    values: Mapping[str, Any], one: Callable[[int, int], Page[T]], every: Callable[[int], Iterable[T]]
) -> Page[T]:
    """The page that was asked for, by its number and limit; with `--all` every row, as one page."""
    from sealpipe.api.models import Page, Pagination

    if values["all"]:
        rows = tuple(every(values["limit"] or 100))
        return Page(rows, Pagination(total=len(rows)))
    return one(values["page"] or 1, values["limit"] or 25)


def show(
    name: str,
    found: Page[T],
    values: Mapping[str, Any],
    *,
    members: Callable[[T], Mapping[str, Any]],
    line: Callable[[T], str],
) -> None:
    """Print a page: a line a row, or JSON with the rows under `name`."""
    figures = {each: getattr(found.pagination, each) for each in _FIGURES}
    if values["output"] == "json":
        render.json_result({name: [members(row) for row in found.items], "pagination": figures})
        return
    render.lines(line(row) for row in found.items)
    page, pages = values["page"] or 1, found.pagination.total_pages
    if pages and page < pages:
        render.note(f"page {page} of {pages}; --all walks them all")
