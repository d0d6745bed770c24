"""Short codes that the service knows: found by a word of the command line, and listed by pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sealpipe.api.pages import Page, Pagination
from sealpipe.cli import render
from sealpipe.cli.codes import names_receipt
from sealpipe.client import Client
from sealpipe.errors import UsageError
from sealpipe.lookup import find_request_code, find_share_code
from sealpipe.parsing import find_nearest_file

T = TypeVar("T")


def _check_code(word: str) -> str:
    """Return a short code, which may be written code:WORD.

    UsageError for the path of a file, such as a receipt, and for one that is only misspelled.
    """
    if not names_receipt(word):
        return word.removeprefix("code:")
    path = Path(word)
    if path.is_file():
        raise UsageError(
            f"{render.escape(word)} is a file, and this takes a short code",
            remedy="give the code in it: a receipt has it as short_code",
        )
    if near := find_nearest_file(path):
        raise UsageError(
            f"there is no file {render.escape(word)}: nothing was sent",
            remedy=(
                f"did you mean {render.escape(str(near))}? A short code that looks like a file "
                "is written code:WORD"
            ),
        )
    return word


def resolve_share_code(client: Client, word: str, keep: Path | None = None) -> str:
    """Return a share's code; decodes one that CI steps passed percent-encoded.

    UsageError if it is ambiguous.
    """
    word = _check_code(word)
    if "%" not in word:
        return word
    return find_share_code(client.session, word, keep)


def resolve_request_code(client: Client, word: str, keep: Path | None = None) -> str:
    """Return a request's code, like `resolve_share_code`."""
    word = _check_code(word)
    if "%" not in word:
        return word
    return find_request_code(client.session, word, keep)


def fetch_page(
    values: Mapping[str, Any],
    fetch: Callable[[int, int], Page[T]],
    iterate: Callable[[int], Iterable[T]],
) -> Page[T]:
    """Fetch the page that --page and --limit select; with --all, every row as one page."""
    if values["all"]:
        rows = tuple(iterate(values["limit"] or 100))
        return Page(rows, Pagination(total=len(rows)))
    return fetch(values["page"] or 1, values["limit"] or 25)


def print_page(
    name: str,
    page: Page[T],
    values: Mapping[str, Any],
    *,
    members: Callable[[T], Mapping[str, Any]],
    columns: Sequence[str],
    cells: Callable[[T], Sequence[str]],
) -> None:
    """Print a page of a list as a table, or as JSON with the rows under `name`."""
    if values["output"] == "json":
        pagination = {
            each: getattr(page.pagination, each)
            for each in ("page", "limit", "total_pages", "total")
        }
        render.print_json({name: [members(row) for row in page.items], "pagination": pagination})
        return
    render.print_table(columns, map(cells, page.items))
    number, total = values["page"] or 1, page.pagination.total_pages
    if total and number < total:
        render.print_note(f"page {number} of {total}; --all lists all pages")
