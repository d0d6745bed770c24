"""One variable of GitLab: what has to be written, and that it is there in the end."""

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
    missing,
)
from sealpipe_plugins.confirm import Snapshot, store_and_confirm
from sealpipe_plugins.gitlab.variables import Variable, Variables, described

LIMIT: Final = 128 * 1024
"""Bytes of NAME=VALUE and the end that Linux starts a program with: a longer one would stop every job."""

_MASKABLE: Final = re.compile(r"[^ \t\r\n\f\v]{8,}")
"""What GitLab masks where nothing in it is expanded: one line without spaces, 8 characters or more."""


class Ask(NamedTuple):
    """What is to be stored, how: `flags` are those that the target names."""

    key: str
    value: str
    mode: Mode
    marker: str
    flags: dict[str, bool]

    def __repr__(self) -> str:
        return f"Ask({self.key!r}, ...)"


def members(variables: Variables, ask: Ask, there: Variable | None) -> tuple[dict[str, Any], bool]:
    """What has to be written, nothing where that is nothing; and whether the value was there before.

    Raises WriteConflictError, and UnsupportedError for a value that GitLab could not mask or hand to a job.
    """
    value, what = ask.value.encode(), f"{ask.key} of {variables.owner.what}"
    marked = there is not None and ask.marker in there.marks
    content = None if there is None else {ask.key: there.content}
    try:
        after = missing(content, {ask.key: value}, mode=ask.mode, marked=marked)
    except WriteConflictError as error:
        remedy = error.remedy
    else:
        if there is None:
            flags = {"protected": True, "masked": True} | ask.flags
            _check(ask, what, masked=flags["masked"])
            return {"value": ask.value, "raw": True, "description": described("", ask.marker), **flags}, False
        text = there.described(ask.marker)
        if after is None:
            mark = not marked and text != there.description
            return ({"value": ask.value, "description": text} if mark else {}), True
        _check(ask, what, masked=ask.flags.get("masked", there.masked))
        return {"value": ask.value, "raw": True, **ask.flags, **({} if text is None else {"description": text})}, False
    raise WriteConflictError(f"{what} is there already, with another value", remedy=remedy)


def store(variables: Variables, ask: Ask, there: Variable | None) -> tuple[Variable, bool]:
    """Store one, whoever else writes there. `there` was just seen. Return what is there, and whether it was before."""
    looked = [there]
    todo: dict[str, Any] = {}

    def look() -> Snapshot:
        found = looked.pop() if looked else variables.look(ask.key)
        if found is None:
            return Snapshot(None)
        return Snapshot({ask.key: found.content}, markers=" ".join(found.marks), raw=found)

    def write(snapshot: Snapshot, _after: Mapping[str, bytes], _tries: int) -> str | None:
        nonlocal todo
        todo, _ = members(variables, ask, snapshot.raw)
        try:
            (variables.add if snapshot.raw is None else variables.change)(ask.key, todo)
        except (UnsupportedError, SecretNotFoundError) as error:
            refused = error
        else:
            return ""
        # GitLab refuses so, too, what somebody made or deleted since it was looked at.
        if (variables.look(ask.key) is None) == (snapshot.raw is None):
            raise refused
        return None

    what = f"{ask.key} of {variables.owner.what}"
    outcome = store_and_confirm(look, write, {ask.key: ask.value.encode()}, what, ask.mode, ask.marker)
    if not outcome.wrote:
        todo, _ = members(variables, ask, outcome.snapshot.raw)  # the marker, where it has none yet
        if not todo:
            return outcome.snapshot.raw, True
        _add_marker(variables, ask, todo)
    return _read_back(variables, ask, variables.look(ask.key), todo), not outcome.wrote


def _add_marker(variables: Variables, ask: Ask, todo: Mapping[str, Any]) -> None:
    try:
        variables.change(ask.key, todo)
        return
    except UnknownOutcomeError as error:
        lost = error
    now = variables.look(ask.key)
    if now is None or ask.marker not in now.marks:
        raise lost


def _read_back(variables: Variables, ask: Ask, now: Variable | None, todo: dict[str, Any]) -> Variable:
    what = f"{ask.key} of {variables.owner.what}"
    if now is None or now.value not in (None, ask.value):
        raise PluginError(f"GitLab took {what}, and has something else there now", remedy="see who else writes there")
    if "$" in ask.value and not now.raw:
        raise UnsupportedError(
            f"{what} is stored, but this GitLab expands the $ in it", remedy="use GitLab 15.7 or newer, or a file"
        )
    wrong = [name for name in ("masked", "protected") if todo.get(name, getattr(now, name)) != getattr(now, name)]
    if wrong:
        raise PluginError(f"GitLab stored {what} otherwise than asked: {', '.join(wrong)}", remedy="look at it there")
    return now


def _check(ask: Ask, what: str, *, masked: bool) -> None:
    if masked and not _MASKABLE.fullmatch(ask.value):
        raise UnsupportedError(
            f"GitLab could not mask the value for {what}: it would stand in the logs of jobs that print it",
            remedy="a masked value is one line without spaces, 8 characters or more; masked=0 stores it all the same",
        )
    if len(ask.key) + len(ask.value.encode()) + 2 > LIMIT:
        raise UnsupportedError(
            f"the value for {what} is longer than any job can be started with", remedy="store it elsewhere"
        )
