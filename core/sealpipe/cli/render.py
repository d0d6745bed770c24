"""The only module that prints: the result on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from sealpipe import ci_systems
from sealpipe.errors import DeliveryError, Note, PluginError, SealpipeError, ServiceError, WireError

SCHEMA = 1

_SECRET: Final = re.compile(
    r"(#|%23)(?:1[A-Za-z0-9_-]{32,}|[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-]))|(_sk_live_)[A-Za-z0-9_.-]+"
    r"|(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[A-Za-z0-9_-]{43}(?![\w-])"
)
"""The key of a link or the seed of a request after its `#`, the part of a credential after its
prefix, and 32 bytes in base64url, as any part of a credential or a key is written: typed where
something else belongs, for example. No digit is asked for: one in 1,500 such texts has none; one
in 5,000,000,000 has no letter of both cases."""


def print_result(text: str) -> None:
    """Print the result, such as a link, exactly as it is.

    DeliveryError if stdout cannot be written.

    Bypasses Python's buffer, which would try to write the rest again at exit, and fail again.
    """
    print_bytes(_encode(text))


def print_bytes(data: bytes) -> None:
    """Print the result byte for byte. DeliveryError if stdout cannot be written."""
    try:
        if sys.stdout is None:
            raise OSError(9, "it is closed")
        _write(sys.stdout.fileno(), data)
    except OSError as error:
        raise DeliveryError(f"stdout cannot be written: {error.strerror}") from None


def print_lines(rows: Iterable[str]) -> None:
    """Print lines on stdout, escaped so that they control neither a terminal nor a CI system."""
    print_result("".join(f"{_escape_line(row)}\n" for row in rows))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows with tabs between their cells.

    On a terminal aligned, below the names of the columns.
    """
    if not (sys.stdout is not None and sys.stdout.isatty()):
        print_lines(map("\t".join, rows))
        return
    table = [[escape(cell) for cell in row] for row in rows]
    lines = [list(columns), *table] if table else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print_lines("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def print_json(members: Mapping[str, Any]) -> None:
    """Print the result as one line of JSON."""
    print_result(_to_json(members))


def print_json_rows(rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print a result, or a list of them, as one line of JSON."""
    if isinstance(rows, Mapping):
        print_json(rows)
        return
    print_result("[" + ",".join(_to_json(row).rstrip("\n") for row in rows) + "]\n")


def print_note(text: str) -> None:
    """Print a line for people on stderr."""
    try:
        if sys.stderr is not None:
            lines = redact(text).split("\n")
            _write(
                sys.stderr.fileno(), _encode("".join(f"{_escape_line(line)}\n" for line in lines))
            )
    except OSError:
        pass  # stderr is closed; the exit code still reports the outcome


def print_view(lines: Sequence[str], *, over: int = 0) -> None:
    """Print lines on stdout, each at most as wide as the terminal, over the last `over` ones.

    For a terminal only. DeliveryError if stdout cannot be written.
    """
    width = _get_size().columns
    shown = (_cut(_escape_line(line).expandtabs(), width - 1) for line in lines)
    up = f"\x1b[{over}F\x1b[J" if over else ""
    print_result(up + "".join(f"{line}\n" for line in shown))


def get_height() -> int:
    """Return the lines of the terminal."""
    return _get_size().lines


def _get_size() -> os.terminal_size:
    size = os.terminal_size((0, 0))
    with suppress(OSError):
        size = os.get_terminal_size(1)
    return os.terminal_size((size.columns or 80, size.lines or 24))  # some tell none


def _cut(text: str, width: int) -> str:
    """Return as much of a text as fits into so many columns: some characters take two."""
    taken = 0
    for at, character in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > width:
            return text[:at]
    return text


def print_status(text: str) -> None:
    """Replace the status line on stderr; for a terminal only."""
    with suppress(OSError, AttributeError):
        _write(sys.stderr.fileno(), _encode(f"\r{_escape_line(text)}\x1b[K"))


def is_terminal() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def print_error(error: SealpipeError, *, as_json: bool) -> None:
    """Print an error and its remedy; as JSON one object, the last line on stderr."""
    notes = _list_notes(error)
    if as_json:
        print_note(_to_json({"error": describe_error(error)}).rstrip("\n"))
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
    """Return an error as JSON members, without those that do not apply."""
    members: dict[str, Any] = {
        "type": type(error).__name__,
        "message": error.message,
        "remedy": error.remedy,
        "notes": _list_notes(error) or None,
        "exit_code": error.exit_code,
        "outbox_id": getattr(error, "outbox_id", None),
        "mistakes": [_describe_mistake(*each) for each in getattr(error, "mistakes", ())] or None,
    }
    if isinstance(error, ServiceError):
        members |= {
            "status": error.status,
            "error_code": error.error_code,
            "retry_after": error.retry_after,
        }
        members |= {"additional_data": error.additional_data or None}
    if isinstance(error, PluginError):
        members["reference"] = error.locator
    if isinstance(error, WireError):
        members["reason"] = error.reason
    return {name: value for name, value in members.items() if value not in (None, "")}


def _describe_mistake(place: object, problem: str, remedy: str) -> dict[str, str]:
    """Return a mistake in a batch's file as JSON members."""
    return {"place": str(place), "problem": problem, "remedy": remedy}


def _list_notes(error: SealpipeError) -> list[str]:
    """Return our notes on an error, except those that repeat its outbox entry."""
    entry = getattr(error, "outbox_id", None)
    return [line for line in Note.on(error) if not entry or entry not in line]


def escape(value: object) -> str:
    """Escape control characters in external text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def redact(text: str) -> str:
    """Redact link keys and credentials in text, such as a link given instead of a path."""
    return _SECRET.sub(r"\1\2[withheld]", text)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 submission`, `2 submissions`, `3 processes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def format_duration(seconds: float) -> str:
    """Return what is left of a time: `0:05`, `12:30`, `23:59:00`."""
    total = max(0, round(seconds))
    hours, remainder = divmod(total, 3600)
    minutes, rest = divmod(remainder, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def escape_inline(text: str) -> str:
    """Escape external text that follows other text in a line."""
    return ci_systems.escape_inline(escape(text))


def escape_json(text: str) -> str:
    """Escape text as in a JSON result, without quotes."""
    return ci_systems.escape_json(json.dumps(text))[1:-1]


def _to_json(members: Mapping[str, Any]) -> str:
    # ASCII only: control characters of terminals and of bidirectional text stay escaped. Members
    # may come from the service: they do not override our schema.
    return (
        ci_systems.escape_json(json.dumps({"schema": SCHEMA, **members} | {"schema": SCHEMA}))
        + "\n"
    )


def _escape_line(line: str) -> str:
    """Escape a line for a terminal and a CI system; keep the tabs between its cells."""
    if not line.replace("\t", "").isprintable():
        line = "\t".join(escape(cell) for cell in line.split("\t"))
    return ci_systems.escape_line(line)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
