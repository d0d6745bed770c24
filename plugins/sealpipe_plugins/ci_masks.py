"""Masks: the lines by which a runner learns what to hide from then on."""

from __future__ import annotations

from collections.abc import Iterable

from sealpipe.plugin import RunnerCommand, Secret, lines_to_mask, runner_reads_stderr, write_stderr


def write_masks(command: RunnerCommand, values: Iterable[Secret]) -> int:
    """Mask values and each of their lines, on stderr. Return how many lines are too short for that.

    Nothing is written where no runner reads stderr: in a file the mask would be the leak itself.
    """
    if not runner_reads_stderr():
        return 0
    lines, short = lines_to_mask(value.reveal() for value in values)
    write("".join(map(command.line, lines)))
    return short


def write(text: str) -> None:
    """Write text to stderr, whole."""
    write_stderr(text.encode("utf-8", "replace"))
