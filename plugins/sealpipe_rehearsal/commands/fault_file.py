"""Reads a fault plan from a TOML file, and reports faults that were never injected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from sealpipe.cli import render
from sealpipe.errors import SettingError
from sealpipe_rehearsal.fault_parser import FaultPlanError, parse_plan
from sealpipe_rehearsal.fault_plan import Progress

_REMEDY = "docs/reference/rehearsal.md lists the faults and their parameters"


def read_plan(path: str) -> list[dict[str, object]]:
    """Return the checked rows of a TOML file. Raises SettingError with the entry and its line."""
    escaped_path = render.escape(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        plan = tomllib.loads(text)
    except OSError as error:
        raise SettingError(
            f"the fault plan {escaped_path} cannot be read: {error.strerror}",
            remedy=f"check the path: it is relative to the working directory; {_REMEDY}",
        ) from None
    except ValueError as error:  # not TOML, not UTF-8, or a zero byte in the path
        message = (
            render.escape(str(error))
            if isinstance(error, tomllib.TOMLDecodeError)
            else "it is not UTF-8 text"
        )
        raise SettingError(
            f"the fault plan {escaped_path} is not TOML: {message}", remedy=_REMEDY
        ) from None
    except RecursionError:
        raise SettingError(
            f"the fault plan {escaped_path} is not TOML: it is nested too deeply", remedy=_REMEDY
        ) from None
    if list(plan) != ["fault"]:
        raise SettingError(
            f"the fault plan {escaped_path} must hold only [[fault]] entries", remedy=_REMEDY
        )
    rows = plan["fault"]
    try:
        parse_plan(rows)
    except FaultPlanError as error:
        position = _line(text, error.number, len(rows) if isinstance(rows, list) else 0)
        raise SettingError(
            f"the fault plan {escaped_path}: {position}{render.escape(str(error))}", remedy=_REMEDY
        ) from None
    return rows  # type: ignore[no-any-return]


def report_unused(faults: Sequence[Progress]) -> None:
    """Report rows that matched no request, and so tested nothing."""
    for number, progress in enumerate(faults, 1):
        if progress.applied == 0:
            row = render.escape(f"{progress.row} ({progress.row.source.get('when', '*')})")
            render.print_note(f"fault {number} was never injected, as no request matched it: {row}")


def _line(text: str, number: int | None, rows: int) -> str:
    """Return the line where an entry begins, or an empty string if uncertain.

    Tomllib keeps no line numbers.
    """
    starts = [
        match.start()
        for match in re.finditer(r"^[ \t]*\[\[[ \t]*\"?fault\"?[ \t]*\]\]", text, re.MULTILINE)
    ]
    if number is None or len(starts) != rows:
        return ""
    return f"line {text.count(chr(10), 0, starts[number - 1]) + 1}, "
