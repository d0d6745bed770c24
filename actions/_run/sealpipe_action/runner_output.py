"""A step's output to the runner: log lines, annotations, masks, outputs and the summary.

The text may be hostile.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from sealpipe.ci_commands import (
    format_output,
    is_stderr_readable,
    make_annotation,
    select_maskable_lines,
    write_stderr,
)
from sealpipe.ci_systems import ADD_MASK, escape_line

_CELL = 300
"""Maximum characters of a cell in the summary."""
_ADDRESS = re.compile(r"[^\s'\"<>(),;:%]+@[^\s'\"<>(),;:%]+")


def log(text: str) -> None:
    """Write a line to the log."""
    write_stderr(f"{escape_line(escape_unprintable(text))}\n".encode())


def annotate(level: str, message: str) -> None:
    """Write an annotation, which the run's page displays."""
    write_stderr(make_annotation(level).format(escape_unprintable(message)).encode())


def mask(values: Iterable[str]) -> None:
    """Mask values and each of their lines; call this before they are set as outputs."""
    lines, short = select_maskable_lines(values)
    if is_stderr_readable():
        write_stderr("".join(map(ADD_MASK.format, lines)).encode("utf-8", "replace"))
    if short == 1:
        annotate("warning", "1 secret line is too short to be masked: do not print it")
    elif short:
        annotate("warning", f"{short} secret lines are too short to be masked: do not print them")


def mask_link(link: str) -> None:
    """Mask a link, its fragment, and the key in the fragment."""
    fragment = link.partition("#")[2]
    mask([link, fragment, fragment[1:]])


def escape_unprintable(text: str) -> str:
    """Escape control characters."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def hide_addresses(text: str) -> str:
    """Replace email addresses, also in an escaped annotation."""
    return _ADDRESS.sub("(address)", text)


def log_error(error: Mapping[str, object], clean: Callable[[str], str] = str) -> None:
    """Log the error object of `sealpipe --output json`, each line of its message as one; `clean` is
    applied to all.
    """
    first, *more = str(error.get("message", "")).split("\n")
    log(clean(f"sealpipe: {first}"))
    rejected, notes = error.get("additional_data"), error.get("notes")
    details = more + (
        [f"{name}: {reason}" for name, reason in rejected.items()]
        if isinstance(rejected, Mapping)
        else []
    )
    details += [str(error["remedy"])] if error.get("remedy") else []
    details += [str(each) for each in notes] if isinstance(notes, list) else []
    for line in details:
        log(clean(f"  {line}"))


def summary_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return a Markdown table for the summary, without empty rows."""
    body = "".join(f"| {name} | {escape_cell(value)} |\n" for name, value in rows if value)
    return f"### {escape_cell(title)}\n\n| | |\n| --- | --- |\n{body}\n"


def summary_rows(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with a head for the summary; without rows only the title."""
    lines = (
        [head, ["---"] * len(head), *([escape_cell(cell) for cell in row] for row in rows)]
        if rows
        else []
    )
    return (
        f"### {escape_cell(title)}\n\n"
        + "".join(f"| {' | '.join(line)} |\n" for line in lines)
        + "\n"
    )


def escape_cell(text: str) -> str:
    """Escape text for HTML and Markdown, so that not even `www.` becomes a link."""
    short = text if len(text) <= _CELL else text[:_CELL] + " ..."
    plain = html.escape(escape_unprintable(short))
    return re.sub(
        r"[^\w\s&;,-]|_", lambda char: f"&#{ord(char[0])};", plain.replace("&#x27;", "&apos;")
    )


LIMIT = 900_000
"""Bytes of one output: the runner accepts 1 MB for a whole job."""
SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's summary: the runner drops a larger one entirely."""


def set_outputs(environ: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Set outputs, all or none. Raises ValueError with the name of one that cannot be set."""
    for name, value in values.items():
        if len(value.encode("utf-8", "replace")) > LIMIT:
            raise ValueError(name)
    _append(
        environ,
        "GITHUB_OUTPUT",
        "".join(format_output(name, value) for name, value in values.items()),
    )


def set_variable(environ: Mapping[str, str], name: str, value: str) -> None:
    """Set an environment variable for later steps of the job.

    Raises ValueError with its name if it cannot be set.
    """
    _append(environ, "GITHUB_ENV", format_output(name, value))


def add_summary(environ: Mapping[str, str], markdown: str) -> bool:
    """Append to the summary. Return False, and write nothing, if it would exceed the limit."""
    file = Path(environ.get("GITHUB_STEP_SUMMARY") or os.devnull)
    size = file.stat().st_size if file.exists() else 0
    if size + len(markdown.encode("utf-8", "replace")) > SUMMARY_LIMIT:
        return False
    _append(environ, "GITHUB_STEP_SUMMARY", markdown)
    return True


def _append(environ: Mapping[str, str], variable: str, text: str) -> None:
    path = environ.get(variable)
    if not path or not text:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        view = memoryview(text.encode("utf-8", "replace"))
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)
