"""What people see: the log, annotations, masks and the run's summary. Whatever is told may be hostile."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from sealpipe.ci_systems import ADD_MASK, RunnerCommand, escape_line, lines_to_mask, runner_reads_stderr, write_stderr

_CELL = 300
"""Characters of a cell in the summary."""


def note(text: str) -> None:
    """A line for people."""
    write_stderr(f"{escape_line(printable(text))}\n".encode())


def annotate(level: str, message: str) -> None:
    """A line that the run's page shows."""
    write_stderr(RunnerCommand(f"::{level} title=sealpipe::", ADD_MASK.percent).line(printable(message)).encode())


def mask(values: Iterable[str]) -> None:
    """Mask values and each of their lines, before anything of them is set."""
    lines, short = lines_to_mask(values)
    if runner_reads_stderr():
        write_stderr("".join(map(ADD_MASK.line, lines)).encode("utf-8", "replace"))
    if short == 1:
        annotate("warning", "1 secret line is too short to be masked: do not print it")
    elif short:
        annotate("warning", f"{short} secret lines are too short to be masked: do not print them")


def printable(text: str) -> str:
    """Text from outside: control characters escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def failure(error: Mapping[str, object]) -> None:
    """The error object of `sealpipe --output json`, for people."""
    note(f"sealpipe: {error.get('message', '')}")
    rejected, notes = error.get("additional_data"), error.get("notes")
    told = [f"{name}: {reason}" for name, reason in rejected.items()] if isinstance(rejected, Mapping) else []
    told += [str(error["remedy"])] if error.get("remedy") else []
    told += [str(each) for each in notes] if isinstance(notes, list) else []
    for line in told:
        note(f"  {line}")


def table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Markdown for the summary; rows without a value are left out."""
    body = "".join(f"| {name} | {cell(value)} |\n" for name, value in rows if value)
    return f"### {cell(title)}\n\n| | |\n| --- | --- |\n{body}\n"


def cell(text: str) -> str:
    """Text as nothing but text, in HTML and in Markdown: no `www.` of a stranger becomes a link."""
    short = text if len(text) <= _CELL else text[:_CELL] + " ..."
    plain = html.escape(printable(short))
    return re.sub(r"[^\w\s&;,-]|_", lambda sign: f"&#{ord(sign[0])};", plain.replace("&#x27;", "&apos;"))
