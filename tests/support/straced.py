"""Commands under strace: killed at a chosen system call, or with one of their calls failing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.parts import program

HASH_SEED = {"PYTHONHASHSEED": "0"}
"""So that a second run makes the same system calls as the first."""


@dataclass(frozen=True)
class Point:
    """The `number`th call of `name` in a process, counted from 1. `text` is what strace showed of it."""

    name: str
    number: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


def killing(point: Point, log: Path, signal: str = "SIGKILL") -> list[str]:
    """Words to put before a command: it gets the signal as it enters that call."""
    return injecting([(point, f"signal={signal}")], log)


def failing(call: str | Point, error: str, log: Path) -> list[str]:
    """Words to put before a command: that call (or every one of that name) fails with that error."""
    return injecting([(call, f"error={error}")], log)


def injecting(what: Iterable[tuple[str | Point, str]], log: Path) -> list[str]:
    """Words to put before a command: several calls of different names, each with what strace is to do to it."""
    words = [program("strace"), "-f", "-qq", "-o", str(log)]
    names = []
    for call, action in what:
        name, when = (call.name, str(call.number)) if isinstance(call, Point) else (call, "1+")
        names.append(name)
        words += ["-e", f"inject={name}:{action}:when={when}"]
    return [*words, "-e", f"trace={','.join(names)}"]


def tracing(log: Path) -> list[str]:
    """Words to put before a command: every call is written to `log`."""
    return [program("strace"), "-f", "-qq", "-s", "200", "-o", str(log)]


_CALL = re.compile(r"^\d+\s+(?:\[pid\s+\d+\]\s+)?([a-z_0-9]+)\((.*)$")


def points(log: Path, since: str) -> list[Point]:
    """The calls of a traced command from the first that mentions `since` to the last."""
    counts: Counter[str] = Counter()
    found: list[Point] = []
    for line in log.read_text(errors="backslashreplace").splitlines():
        match = _CALL.match(line)
        if match is None or "resumed>" in line:
            continue
        name = match.group(1)
        counts[name] += 1
        if found or since in line:
            found.append(Point(name, counts[name], match.group(2)))
    return found


def first(found: Sequence[Point], name: str, *, after: str | Point | None = None, showing: str = "") -> Point:
    """The first call of that name after another one, with something in what strace showed of it."""
    passed = after is None
    for point in found:
        if passed and point.name == name and showing in point.text:
            return point
        passed = passed or after in (point, point.name)
    raise AssertionError(f"no {name} after {after}")


def only(found: Sequence[Point], names: Iterable[str]) -> list[Point]:
    wanted = set(names)
    return [point for point in found if point.name in wanted]
