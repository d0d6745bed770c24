"""What a job tells its runner.

Masks, outputs and annotations, and whether the runner reads stderr at all.

Like `ci_systems`, it imports only the standard library, because `actions/_run` uses it with any
Python.
"""

from __future__ import annotations

import os
import re
import select
import stat
from collections.abc import Iterable
from typing import Final

from sealpipe.ci_systems import ADD_MASK, RunnerCommand


def make_annotation(level: str) -> RunnerCommand:
    """Return the command of GitHub Actions that shows a text on the run's page."""
    return RunnerCommand(f"::{level} title=sealpipe::", ADD_MASK.percent)


def format_output(name: str, value: str, delimiter: str | None = None) -> str:
    """Return an entry for GITHUB_OUTPUT.

    Raises ValueError, with the name, if the runner would parse it differently.

    `delimiter` is random, except in tests.
    """
    if delimiter is None:
        delimiter = f"sealpipe-{os.urandom(16).hex()}"
    if delimiter in value or "\n" in name or "=" in name:
        raise ValueError(name)
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


MIN_MASK_LENGTH: Final = 4
"""Minimum length of a masked line: shorter masks would hide common text in the whole log."""


def select_maskable_lines(values: Iterable[str]) -> tuple[list[str], int]:
    """Return values and each of their lines, and how many are too short to mask."""
    parts = [
        part
        for value in values
        for part in (value, *re.split(r"\r\n|[\r\n]", value), *value.splitlines())
    ]
    lines = [part for part in dict.fromkeys(parts) if part.strip()]
    maskable = [line for line in lines if len(line.strip()) >= MIN_MASK_LENGTH]
    return maskable, len(lines) - len(maskable)


def write_stderr(data: bytes) -> None:
    """Write all of it to stderr, without a buffer."""
    view = memoryview(data)
    while view:
        view = view[os.write(2, view) :]


def is_stderr_readable() -> bool:
    """Whether stderr may reach a runner: no file, no device, no pipe without a reader."""
    try:
        mode = os.fstat(2).st_mode
        if stat.S_ISFIFO(mode):
            return not _is_broken(2)
        return stat.S_ISSOCK(mode) or os.isatty(2)
    except OSError:
        return False


def _is_broken(descriptor: int) -> bool:
    """Whether a pipe has lost its reader."""
    poller = select.poll()
    poller.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poller.poll(0))
