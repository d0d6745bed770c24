"""The only place that prints. stdout carries the result and nothing else; all else goes to stderr."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sealpipe import log_commands
from sealpipe.errors import DeliveryError, Note, PluginError, SealpipeError, ServiceError, WireError

if TYPE_CHECKING:
    from datetime import datetime

    from sealpipe.api.models import Page

T = TypeVar("T")

SCHEMA = 1

_SECRET: Final = re.compile(
    r"(#|%23)(?:1[A-Za-z0-9_-]{32,}|[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-]))|(_sk_live_)[A-Za-z0-9_.-]+"
)
"""A link's key or a request's seed behind its sign, and what makes a credential one."""


def print_result(text: str) -> None:
    """Put the result on stdout, now and whole: a link, or another exact value. DeliveryError where nobody takes it.

    Written past Python's buffer: what is left in that would be written again, and fail again, at exit.
    """
    try:
        if sys.stdout is None:
            raise OSError(9, "it is closed")
        _write(sys.stdout.fileno(), text)
    except OSError as error:
        raise DeliveryError(f"the result could not be written to stdout: {error.strerror}") from None


def print_lines(rows: Iterable[str]) -> None:
    """Put lines on stdout, in which there may be text from outside: it commands neither a terminal nor a CI system."""
    print_result("".join(f"{_plain(row)}\n" for row in rows))


def print_json(members: Mapping[str, Any]) -> None:
    """The result as one line of JSON."""
    print_result(_json(members))


def print_json_rows(rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """One result, or a list of them, as one line of JSON."""
    if isinstance(rows, Mapping):
        print_json(rows)
        return
    print_result("[" + ",".join(_json(row).rstrip("\n") for row in rows) + "]\n")


def print_page(
    name: str,
    page: Page[T],
    values: Mapping[str, Any],
    *,
    members: Callable[[T], Mapping[str, Any]],
    line: Callable[[T], str],
) -> None:
    """Print a page of a list: a line a row, or JSON with the rows under `name`."""
    if values["output"] == "json":
        figures = {each: getattr(page.pagination, each) for each in ("page", "limit", "total_pages", "total")}
        print_json({name: [members(row) for row in page.items], "pagination": figures})
        return
    print_lines(line(row) for row in page.items)
    number, total = values["page"] or 1, page.pagination.total_pages
    if total and number < total:
        print_note(f"page {number} of {total}; --all lists all pages")


def print_note(text: str) -> None:
    """A line for people."""
    try:
        if sys.stderr is not None:
            told = redact(text).split("\n")
            _write(sys.stderr.fileno(), "".join(f"{_plain(line)}\n" for line in told))
    except OSError:
        pass  # nobody listens: the exit code still tells


def print_status(text: str) -> None:
    """What is going on, in the place of what was told so before; for a terminal only (`watched`)."""
    with suppress(OSError, AttributeError):
        _write(sys.stderr.fileno(), f"\r{_plain(text)}\x1b[K")


def is_terminal() -> bool:
    """Whether a person looks on: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def print_error(error: SealpipeError, *, as_json: bool) -> None:
    """What went wrong and what to do next; as JSON one object, the last line on stderr."""
    notes = _notes(error)
    if as_json:
        print_note(_json({"error": describe_error(error)}).rstrip("\n"))
        return
    print_note(f"sealpipe: {error.message}")
    locator = getattr(error, "locator", "")
    if locator and locator not in error.message:
        print_note(f"  reference: {locator}")
    for name, reason in getattr(error, "additional_data", {}).items():
        print_note(f"  {escape(name)}: {escape(reason)}")
    for line in [error.remedy, *notes]:
        if line and line not in error.message:
            print_note(f"  {line}")


def describe_error(error: SealpipeError) -> dict[str, Any]:
    """An error as JSON members; those that do not apply are left out."""
    members: dict[str, Any] = {
        "type": type(error).__name__,
        "message": error.message,
        "remedy": error.remedy,
        "notes": _notes(error) or None,
        "exit_code": error.exit_code,
        "outbox_id": getattr(error, "outbox_id", None),
    }
    if isinstance(error, ServiceError):
        members |= {"status": error.status, "error_code": error.error_code, "retry_after": error.retry_after}
        members |= {"additional_data": error.additional_data or None}
    if isinstance(error, PluginError):
        members["reference"] = error.locator
    if isinstance(error, WireError):
        members["reason"] = error.reason
    return {name: value for name, value in members.items() if value not in (None, "")}


def _notes(error: SealpipeError) -> list[str]:
    """The lines of ours on it. Where it names its outbox entry, it has said how to finish that."""
    entry = getattr(error, "outbox_id", None)
    return [line for line in Note.on(error) if not entry or entry not in line]


def escape(value: object) -> str:
    """Text from outside for a terminal: control characters escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def redact(text: str) -> str:
    """Text without a link's key and without a credential: one that was given in a path's or a word's place, say."""
    return _SECRET.sub(r"\1\2[withheld]", text)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 submission`, `2 submissions`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_expiry(expires_at: datetime | None, *, known: bool) -> str:
    """When something ends, in words; null from the service means never, and nothing means that nobody knows."""
    if not known:
        return "the service did not say when it expires"
    from sealpipe.times import format_time

    return "does not expire" if expires_at is None else f"expires {format_time(expires_at)}"


def escape_inline(text: str) -> str:
    """Text from outside as it stands in a line, behind other text."""
    return log_commands.escape_inline(escape(text))


def escape_json(text: str) -> str:
    """Text as it stands in a JSON result, between its quotes."""
    return log_commands.escape_json(json.dumps(text))[1:-1]


def _json(members: Mapping[str, Any]) -> str:
    # ASCII only: a terminal's control characters, and those of bidirectional text, stay escaped. What the service
    # says may be among the members: it does not say our schema.
    return log_commands.escape_json(json.dumps({"schema": SCHEMA, **members} | {"schema": SCHEMA})) + "\n"


def _plain(line: str) -> str:
    """A line that does nothing to a terminal and to a CI system; the tabs between its cells stay."""
    if not line.replace("\t", "").isprintable():
        line = "\t".join(escape(cell) for cell in line.split("\t"))
    return log_commands.escape_line(line)


def _write(descriptor: int, text: str) -> None:
    view = memoryview(text.encode("utf-8", "backslashreplace"))
    while view:
        view = view[os.write(descriptor, view) :]
