"""Write one variable of GitLab and confirm it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import (
    Mode,
    PluginError,
    SecretNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
    merge_fields,
)
from sealpipe_plugins.confirm import Snapshot, store_and_confirm
from sealpipe_plugins.gitlab.variables import Variable, Variables, add_mark

LIMIT: Final = 128 * 1024
"""Maximum bytes of NAME=VALUE with its final NUL in a Linux environment; a longer one makes every
job fail.
"""

_MASKABLE: Final = re.compile(r"[^ \t\r\n\f\v]{8,}")
"""Values that GitLab can mask, with expansion off: one line without spaces, at least 8
characters.
"""


class VariableWrite(NamedTuple):
    """A write of one variable; `flags` come from the reference."""

    key: str
    value: str
    mode: Mode
    marker: str
    flags: dict[str, bool]

    def __repr__(self) -> str:
        return f"Ask({self.key!r}, ...)"


def members_to_write(
    variables: Variables, job: VariableWrite, existing: Variable | None
) -> dict[str, Any]:
    """Return the members to write, possibly none.

    Raises WriteConflictError, or UnsupportedError for a value that GitLab cannot mask or pass to a
    job.
    """
    value, what = job.value.encode(), f"{job.key} of {variables.owner.what}"
    has_mark = existing is not None and job.marker in existing.marks
    content = None if existing is None else {job.key: existing.content}
    try:
        after = merge_fields(content, {job.key: value}, mode=job.mode, marked=has_mark)
    except WriteConflictError as error:
        remedy = error.remedy
    else:
        if existing is None:
            flags = {"protected": True, "masked": True} | job.flags
            _check_value(job, what, masked=flags["masked"])
            return {
                "value": job.value,
                "raw": True,
                "description": add_mark("", job.marker),
                **flags,
            }
        text = existing.description_with(job.marker)
        if after is None:
            needs_mark = not has_mark and text != existing.description
            return {"value": job.value, "description": text} if needs_mark else {}
        _check_value(job, what, masked=job.flags.get("masked", existing.masked))
        return {
            "value": job.value,
            "raw": True,
            **job.flags,
            **({} if text is None else {"description": text}),
        }
    raise WriteConflictError(f"{what} exists already with another value", remedy=remedy)


def store_variable(
    variables: Variables, job: VariableWrite, existing: Variable | None
) -> tuple[Variable, bool]:
    """Store one variable, even under concurrent writes.

    Return it, and whether it had the value before.

    `existing` is the variable as last read.
    """
    already_read = [existing]
    to_write: dict[str, Any] = {}

    def read() -> Snapshot:
        variable = already_read.pop() if already_read else variables.read(job.key)
        if variable is None:
            return Snapshot(None)
        return Snapshot({job.key: variable.content}, markers=" ".join(variable.marks), raw=variable)

    def write(snapshot: Snapshot, _after: Mapping[str, bytes], _tries: int) -> str | None:
        nonlocal to_write
        to_write = members_to_write(variables, job, snapshot.raw)
        try:
            (variables.add if snapshot.raw is None else variables.change)(job.key, to_write)
        except (UnsupportedError, SecretNotFoundError) as error:
            rejection = error
        else:
            return ""
        # GitLab also refuses a variable that was created or deleted since it was read.
        if (variables.read(job.key) is None) == (snapshot.raw is None):
            raise rejection
        return None

    what = f"{job.key} of {variables.owner.what}"
    outcome = store_and_confirm(
        read, write, {job.key: job.value.encode()}, what, job.mode, job.marker
    )
    if not outcome.is_written:
        # Adds the marker if it is missing.
        to_write = members_to_write(variables, job, outcome.snapshot.raw)
        if not to_write:
            return outcome.snapshot.raw, True
        _add_marker(variables, job, to_write)
    return _read_back(variables, job, variables.read(job.key), to_write), not outcome.is_written


def _add_marker(variables: Variables, job: VariableWrite, to_write: Mapping[str, Any]) -> None:
    try:
        variables.change(job.key, to_write)
        return
    except UnknownOutcomeError as error:
        outcome_error = error
    variable = variables.read(job.key)
    if variable is None or job.marker not in variable.marks:
        raise outcome_error


def _read_back(
    variables: Variables, job: VariableWrite, variable: Variable | None, to_write: dict[str, Any]
) -> Variable:
    what = f"{job.key} of {variables.owner.what}"
    if variable is None or variable.value not in (None, job.value):
        raise PluginError(
            f"GitLab accepted {what} but has another value now",
            remedy="check what else writes to it",
        )
    if "$" in job.value and not variable.raw:
        raise UnsupportedError(
            f"{what} is stored, but this GitLab expands the $ in it",
            remedy="use GitLab 15.7 or newer, or a file",
        )
    wrong_flags = [
        name
        for name in ("masked", "protected")
        if to_write.get(name, getattr(variable, name)) != getattr(variable, name)
    ]
    if wrong_flags:
        raise PluginError(
            f"GitLab stored {what} with other flags than requested: {', '.join(wrong_flags)}",
            remedy="check it there",
        )
    return variable


def _check_value(job: VariableWrite, what: str, *, masked: bool) -> None:
    if masked and not _MASKABLE.fullmatch(job.value):
        raise UnsupportedError(
            (
                f"GitLab could not mask the value for {what}: it would appear in the logs of "
                "jobs that print it"
            ),
            remedy=(
                "a masked value is one line without spaces, 8 characters or more; masked=0 "
                "stores it unmasked"
            ),
        )
    if len(job.key) + len(job.value.encode()) + 2 > LIMIT:
        raise UnsupportedError(
            f"the value for {what} is too long: no job could start with it",
            remedy="store it elsewhere",
        )
