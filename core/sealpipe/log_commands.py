"""Escape text that CI systems would take for commands in a job's output: one table of the marks of such commands.

A mark is broken by an escape for one of its signs: `##vso[` is written `#\\x23vso[`, and in JSON, where that means the
same text, `#\\u0023vso[`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple


class Mark(NamedTuple):
    """How a command begins: `text`, and `after` it what this pattern matches.

    `sign` is the index of the sign that is escaped. Where `anywhere` is false a line has to begin with the mark, blanks
    aside.
    """

    text: str
    sign: int
    after: str
    anywhere: bool
    systems: str


_NAMED: Final = r"[A-Za-z0-9_.-]*[\[:]"
_ALONE: Final = r"(?:[\s\"\\]|$)"
"""A blank or the end, of a JSON string too."""

AT_START: Final = False
ANYWHERE: Final = True

MARKS: Final = (
    Mark("::", 1, "", AT_START, "GitHub Actions, Gitea, Forgejo"),
    Mark("##", 1, _NAMED, ANYWHERE, "GitHub Actions and Azure (##[x]), Azure (##vso[), TeamCity, Unity (##utp:)"),
    Mark("section_start:", 13, "", ANYWHERE, "GitLab"),
    Mark("section_end:", 11, "", ANYWHERE, "GitLab"),
    Mark("travis_fold:", 11, "", ANYWHERE, "Travis"),
    Mark("travis_time:", 11, "", ANYWHERE, "Travis"),
    Mark("---", 0, _ALONE, AT_START, "Buildkite"),
    Mark("+++", 0, _ALONE, AT_START, "Buildkite"),
    Mark("~~~", 0, _ALONE, AT_START, "Buildkite"),
    Mark("^^^", 0, r"\s+\+\+\+", AT_START, "Buildkite"),
)

TEXT, JSON = "\\x{:02x}", "\\u{:04x}"
"""How a sign is escaped."""


def escape_line(line: str) -> str:
    """Escape a line, so that no CI system takes it for a command."""
    return _broken(line, MARKS, TEXT)


def escape_inline(text: str) -> str:
    """Escape text that stands inside a line, not at its beginning."""
    return _broken(text, [mark for mark in MARKS if mark.anywhere], TEXT)


def escape_json(text: str) -> str:
    """Escape JSON without changing its meaning: no mark is left, wherever a program might break its lines."""
    return _broken(text, [mark._replace(anywhere=True) for mark in MARKS], JSON)


def _broken(text: str, marks: Iterable[Mark], form: str) -> str:
    for mark in marks:
        if mark.text in text:
            before, sign, rest = mark.text[: mark.sign], mark.text[mark.sign], mark.text[mark.sign + 1 :]
            start = "" if mark.anywhere else r"\A\s*"
            pattern = f"({start}{re.escape(before)}){re.escape(sign)}(?={re.escape(rest)}{mark.after})"
            # In a replacement a backslash is written twice.
            text = re.sub(pattern, rf"\g<1>\{form.format(ord(sign))}", text)
    return text
