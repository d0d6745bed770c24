"""The tutorial of batches, followed as it is printed: its files, each command, and what each prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

from sealpipe.batch.database.records import SECOND
from sealpipe.batch.database.sqlite import SqliteDatabase
from support.parts import ROOT
from support.terminal import Done, Terminal

PAGE = (ROOT / "docs/tutorial/first-batch.md").read_text(encoding="utf-8")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/s/r/[\w-]+")
CHANGING = (
    (LINK, "LINK"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}Z"), "TIME"),
    (re.compile(r"(?m)^[\w-]{12}$"), "CODE"),
)
"""What differs from run to run."""
MINUTE = 60


class Step(NamedTuple):
    """A file to write, or a command and what it prints; and how many minutes the reader has waited before."""

    name: str
    text: str
    waited: int


def steps() -> Iterator[Step]:
    """Yield what the page asks its reader to do."""
    for found in re.finditer(r"^```(csv|toml|console)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        before = PAGE[: found.start()]
        waited = before.count("Wait a minute")
        if found[1] != "console":
            yield Step(re.findall(rf"`(\w+\.{found[1]})`", before)[-1], found[2], waited)
            continue
        for part in re.split(r"^\$ ", found[2], flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            yield Step(f"$ {command}", printed, waited)


def follow(user: Terminal, command: str, minutes: int) -> Done:
    """Type a command, so many minutes later by the database's clock."""
    words = shlex.split(command)
    if words[0] != "sealpipe":
        return user.run(words)
    read_clock = SqliteDatabase.read_clock
    later = round((minutes * MINUTE + bool(minutes)) * SECOND)
    with mock.patch.object(SqliteDatabase, "read_clock", lambda self: read_clock(self) + later):
        return user.sealpipe(*words[1:])


def same(text: str) -> list[str]:
    """Lines without what differs from run to run; rows that run beside one another are in any order."""
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return sorted(text.splitlines())


def test_each_command_prints_what_the_page_says(user: Terminal) -> None:
    links: dict[str, str] = {}
    commands = 0
    for step in steps():
        if not step.name.startswith("$ "):
            user.file(step.name, step.text)
            continue
        command = step.name.removeprefix("$ ")
        for printed, real in links.items():
            command = command.replace(printed, real)
        done = follow(user, command, step.waited)
        assert done.code == 0, done
        assert same(done.out + done.err) == same(step.text), command
        links |= dict(zip(LINK.findall(step.text), LINK.findall(done.out), strict=True))
        commands += 1
    assert commands == 14
