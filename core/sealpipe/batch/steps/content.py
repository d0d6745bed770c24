"""What a row's blob holds, and what it keeps of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sealpipe.api.responses import escape_text
from sealpipe.batch.database.records import Row
from sealpipe.batch.database.sealing import Members
from sealpipe.batch.steps.states import Progress
from sealpipe.errors import Note, SealpipeError

MAX_PROBLEM: Final = 1000
"""Characters of an error that a row keeps."""


class RowContent(NamedTuple):
    """What a row's blob holds.

    Its cells as they are out, those of the file if they differ, and its progress.

    `options` are those that its generation was made with (`BatchDefinition.dump_options`): None
    before that, or if an earlier version made it.
    """

    values: Mapping[str, str]
    progress: Progress
    newer: Mapping[str, str] | None = None
    is_gone: bool = False
    """Whether the file no longer has the row: then only what somebody asks for is done with it."""
    options: Members | None = None

    def to_members(self) -> Members:
        """Return it as JSON members."""
        return {
            "values": dict(self.values),
            "progress": self.progress.to_members(),
            "newer": None if self.newer is None else dict(self.newer),
            "gone": self.is_gone,
            "options": self.options,
        }

    @staticmethod
    def load(row: Row) -> RowContent:
        """Read it from a row that was read with its content."""
        members = row.content or {}
        progress, is_gone = Progress.load(members["progress"]), bool(members.get("gone"))
        return RowContent(
            members["values"], progress, members.get("newer"), is_gone, members.get("options")
        )

    def renew(self) -> RowContent:
        """Return the content of the next generation, which is made of what the file says now.

        Of a row that is gone from the file, it is made of what the file said last: other options
        may name columns that the row does not have.
        """
        if self.is_gone:
            return self._replace(values={**self.values, **(self.newer or {})}, newer=None)
        return self._replace(
            values=self.values if self.newer is None else self.newer, newer=None, options=None
        )


def describe_error(error: Exception) -> tuple[str, str, int]:
    """Return what a row keeps of an error: the problem, the remedy, and the exit code.

    Nothing of it is secret.
    """
    if not isinstance(error, SealpipeError):
        kind, place = type(error).__name__, locate_error(error)
        return (
            f"sealpipe raised an unexpected {kind}{place}",
            "report this as a bug",
            SealpipeError.exit_code,
        )
    locator = getattr(error, "locator", "")
    where = f" ({locator})" if locator and locator not in error.message else ""
    problem = "; ".join((f"{error.message}{where}", *Note.on(error)))
    return (
        escape_text(problem, MAX_PROBLEM),
        escape_text(error.remedy, MAX_PROBLEM),
        error.exit_code,
    )


def locate_error(error: BaseException) -> str:
    """Return where in sealpipe an error was raised, as ` at advance.py:41`."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        place = f" at {name.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
