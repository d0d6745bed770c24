"""Short codes as arguments of commands, and pages of shares and requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command
from sealpipe.errors import UsageError
from sealpipe.parsing import find_nearest_file

if TYPE_CHECKING:
    from sealpipe.api.pages import Page
    from sealpipe.client import Client

T = TypeVar("T")


class CodeCommand(Command):
    """A command that takes short codes or ids, which are opaque and may begin with a dash.

    Its options begin with two dashes, and `-h` is help. So a longer word with one dash is a code,
    and so is every word after `--`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._move_codes_last(args))
        except click.NoSuchOption as error:
            message = error.format_message()
        raise UsageError(
            render.escape(message),
            remedy=f"see `{ctx.command_path} --help`; put a short code that begins with a dash "
            "after --: "
            f"`{ctx.command_path} -- CODE`",
        )

    def _move_codes_last(self, args: list[str]) -> list[str]:
        """Move all words that are neither options nor their values after `--`."""
        with_value = {
            name
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
        }
        options: list[str] = []
        codes: list[str] = []
        remaining = iter(args)
        for word in remaining:
            if word == "--":
                codes += remaining
            elif not _is_option(word):
                codes.append(word)
            else:
                options.append(word)
                if word in with_value:
                    value = next(remaining, None)
                    if value is None:
                        return args  # click reports it
                    options.append(value)
        return [*options, "--", *codes]


def _is_option(word: str) -> bool:
    """Whether a word is an option of a `CodeCommand`: `--any`, `-h` and `-x` are, `-any` is not."""
    return word.startswith("-") and (word[1:2] == "-" or len(word) == 2)


def names_receipt(word: str) -> bool:
    """Return whether a word is the path of a receipt file rather than a short code.

    It has a slash or a dot.
    """
    return not word.startswith("code:") and ("/" in word or "." in word.strip("."))


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
    from sealpipe.lookup import find_share_code

    return find_share_code(client.session, word, keep)


def resolve_request_code(client: Client, word: str, keep: Path | None = None) -> str:
    """Return a request's code, like `resolve_share_code`."""
    word = _check_code(word)
    if "%" not in word:
        return word
    from sealpipe.lookup import find_request_code

    return find_request_code(client.session, word, keep)


def fetch_page(
    values: Mapping[str, Any],
    fetch: Callable[[int, int], Page[T]],
    iterate: Callable[[int], Iterable[T]],
) -> Page[T]:
    """Fetch the page that --page and --limit select; with --all, every row as one page."""
    from sealpipe.api.pages import Page, Pagination

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
