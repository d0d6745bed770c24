"""What people see: the log, annotations, masks and the run's summary. Whatever is told may be hostile."""

from __future__ import annotations

import html
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence

SHORTEST = 4
"""Characters of a line that is masked: a shorter one would mask that letter in the whole log."""
_CELL = 300
"""Characters of a cell in the summary."""


MARKS = (
    ("::", 1, "", False),
    ("##", 1, r"[A-Za-z0-9_.-]*[\[:]", True),
    ("section_start:", 13, "", True),
    ("section_end:", 11, "", True),
    ("travis_fold:", 11, "", True),
    ("travis_time:", 11, "", True),
    ("---", 0, r"(?:[\s\"\\]|$)", False),
    ("+++", 0, r"(?:[\s\"\\]|$)", False),
    ("~~~", 0, r"(?:[\s\"\\]|$)", False),
    ("^^^", 0, r"\s+\+\+\+", False),
)
"""How commands begin in CI systems' logs: the table of `sealpipe.log_commands`, which this package cannot import."""


def note(text: str) -> None:
    """A line for people."""
    write(f"{harmless(printable(text))}\n".encode())


def annotate(level: str, message: str) -> None:
    """A line that the run's page shows."""
    write(f"::{level} title=sealpipe::{escaped(printable(message))}\n".encode())


def can_mask() -> bool:
    """Whether stderr is the runner's: a mask in a file would be the leak, one in the null device would get lost."""
    mode = os.fstat(2).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(2)


def mask(values: Iterable[str]) -> None:
    """Mask values and each of their lines, before anything of them is set."""
    parts = dict.fromkeys(part for value in values for part in _lines(value))
    long = [part for part in parts if len(part.strip()) >= SHORTEST]
    if can_mask():
        write("".join(f"::add-mask::{escaped(part)}\n" for part in long).encode("utf-8", "replace"))
    if len(long) < len(parts):
        annotate("warning", f"{len(parts) - len(long)} secret line(s) are too short to be masked: do not print them")


def _lines(value: str) -> list[str]:
    parts = [value, *re.split(r"\r\n|[\r\n]", value), *value.splitlines()]
    return [part for part in parts if part.strip()]


def escaped(text: str) -> str:
    """The data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def printable(text: str) -> str:
    """Text from outside: control characters escaped."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def harmless(line: str) -> str:
    """A line that no CI system takes for a command."""
    for text, sign, after, anywhere in MARKS:
        if text in line:
            start = "" if anywhere else r"\A\s*"
            before, rest = re.escape(text[:sign]), re.escape(text[sign + 1 :])
            pattern = f"({start}{before}){re.escape(text[sign])}(?={rest}{after})"
            line = re.sub(pattern, rf"\g<1>\\x{ord(text[sign]):02x}", line)
    return line


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


def write(data: bytes) -> None:
    """To stderr, whole."""
    view = memoryview(data)
    while view:
        view = view[os.write(2, view) :]
