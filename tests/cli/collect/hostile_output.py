"""Judges of what a command writes: what a terminal, a CI system's log and a program that reads JSON
make of it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from support.hostile import CANARY, LABEL
from support.outside_text import commands

Fields = Sequence[tuple[str, str, str]]
_EXACT = re.compile(r"(?!\s*(?:---|\+\+\+))[A-Za-z0-9 ._/=@+-]*")


def harmless(data: bytes, *, tabs: int = 0) -> str:
    """The text, once no byte of it does anything to a terminal, and no line anything to a CI
    system.

    `tabs` is how many each line must have.
    """
    text = data.decode("utf-8")
    lines = text.split("\n")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        odd = {sign for sign in text if not (sign.isprintable() or sign in "\n\t")}
        raise AssertionError(f"control characters: {odd!a} in {text[:2000]!a}")
    assert lines.pop() == "", f"the last line has no end: {text[-200:]!a}"
    assert all(line.count("\t") == tabs for line in lines), f"tabs: {text[:2000]!a}"
    found = commands(text)
    assert not found, f"commands: {found[:3]!a}"
    return text


def keeps_to_itself(data: bytes, *, labels: bool = True) -> str:
    """The same for what is no place for values or (with `labels`) the submitter's labels: stderr,
    reports.
    """
    text = harmless(data)
    assert CANARY not in text, f"a value: {text[:2000]!a}"
    assert not labels or LABEL not in text, f"a label: {text[:2000]!a}"
    return text


def shows(text: str, wanted: Iterable[Sequence[Fields]]) -> None:
    """stdout as text: of each request a line for each field, a blank one between submissions, and
    none more.
    """
    expected: list[str | None] = []
    for submissions in wanted:
        own: list[str | None] = []
        for number, fields in enumerate(submissions):
            own += [""] * (number > 0)
            own += [_line(key, value) for key, value, _ in fields]
        expected += [""] * bool(expected and own)
        expected += own
    lines = text.split("\n")[:-1]
    assert len(lines) == len(expected), (
        f"{len(lines)} lines, and not {len(expected)}: {text[:2000]!a}"
    )
    for line, one in zip(lines, expected, strict=True):
        assert one is None or line == one, (line, one)


def _line(key: str, value: str) -> str | None:
    """The line where there is nothing to escape; None where there may be."""
    return f"{key}: {value}" if _EXACT.fullmatch(key) and _EXACT.fullmatch(value) else None


def as_json(data: bytes) -> Any:
    """stdout as JSON: one line, ASCII, and what a strict reader takes."""
    text = harmless(data)
    assert text.isascii()
    assert text.count("\n") == 1
    return json.loads(text, parse_constant=_refused, object_pairs_hook=_distinct)


def fields_in(row: Any) -> list[tuple[str, str, str]]:
    """The fields of a submission, as JSON tells them."""
    return [(field["key"], field["value"], field["type"]) for field in row["fields"]]


def _refused(constant: str) -> Any:
    raise AssertionError(constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), [name for name, _ in pairs]
    return members


class Stream:
    """A file in memory that stands for stdout or stderr."""

    def __init__(self) -> None:
        self.file = os.fdopen(os.memfd_create("stream"), "w+", encoding="utf-8")

    def read(self) -> bytes:
        return self._read

    def close(self) -> None:
        self.file.flush()
        self._read = os.pread(self.file.fileno(), 1 << 30, 0)
        self.file.close()


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def stream() -> Iterator[Stream]:
    stream = Stream()
    try:
        yield stream
    finally:
        stream.close()
