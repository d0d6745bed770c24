"""The files by which a step hands on: outputs and the summary."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

LIMIT = 900_000
"""Bytes of an output: the runner takes 1 MB of a whole job."""
SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's summary: the runner drops one that is larger, whole."""


def entry(name: str, value: str, delimiter: str | None = None) -> str:
    """One output, behind a fresh delimiter that the value does not hold."""
    mark = delimiter or f"sealpipe-{secrets.token_hex(16)}"
    if mark in value or len(value.encode("utf-8", "replace")) > LIMIT:
        raise ValueError(name)
    return f"{name}<<{mark}\n{value}\n{mark}\n"


def set_outputs(environ: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Add them to the step's outputs, in one write. ValueError names one that cannot be set; then none is."""
    _append(environ, "GITHUB_OUTPUT", "".join(entry(name, value) for name, value in values.items()))


def add_summary(environ: Mapping[str, str], markdown: str) -> bool:
    """Add to the run's summary; nothing, and False, where that would be more than the runner takes."""
    file = Path(environ.get("GITHUB_STEP_SUMMARY") or os.devnull)
    there = file.stat().st_size if file.exists() else 0
    if there + len(markdown.encode("utf-8", "replace")) > SUMMARY_LIMIT:
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
