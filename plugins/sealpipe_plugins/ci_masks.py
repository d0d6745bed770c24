"""Masks: the lines by which a runner learns what to hide from then on."""

from __future__ import annotations

from collections.abc import Iterable

from sealpipe.plugin import CI, RunnerCommand, Secret, lines_to_mask, runner_reads_stderr, write_stderr


def mask(ci: CI, command: RunnerCommand, values: Iterable[Secret]) -> None:
    """Mask values and each of their lines, on stderr; warn of lines that are too short for that.

    Nothing is written where no runner reads stderr: in a file the mask would be the leak itself.
    """
    if not runner_reads_stderr():
        return
    lines, short = lines_to_mask(value.reveal() for value in values)
    write("".join(map(command.line, lines)))
    if short == 1:
        ci.annotate("warning", "1 secret line is too short to be masked: do not print it")
    elif short:
        ci.annotate("warning", f"{short} secret lines are too short to be masked: do not print them")


def write(text: str) -> None:
    """Write text to stderr, whole."""
    write_stderr(text.encode("utf-8", "replace"))
