"""Masks: the lines by which a runner learns what to hide from then on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from sealpipe.plugin import RunnerCommand, Secret, runner_reads_stderr

SHORTEST = 4
"""Characters of a line that is masked: a shorter one would mask that letter in the whole log."""


def write_masks(command: RunnerCommand, values: Iterable[Secret]) -> int:
    """Mask values and each of their lines, on stderr; how many lines are too short for that.

    Nothing is written where no runner reads stderr: in a file the mask would be the leak itself.
    """
    if not runner_reads_stderr():
        return 0
    lines = dict.fromkeys(line for value in values for line in _lines(value.reveal()))
    long = [line for line in lines if len(line.strip()) >= SHORTEST]
    write("".join(map(command.line, long)))
    return len(lines) - len(long)


def write(text: str) -> None:
    """To stderr, whole."""
    view = memoryview(text.encode("utf-8", "replace"))
    while view:
        view = view[os.write(2, view) :]


def _lines(value: str) -> list[str]:
    """The value, and each line of it as a log would show it: every kind of break that somebody breaks at."""
    parts = [value, *re.split(r"\r\n|[\r\n]", value), *value.splitlines()]
    return [part for part in parts if part.strip()]
