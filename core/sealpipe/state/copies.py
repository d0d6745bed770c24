"""The record of an unfinished copy: its marker, and how far each write is.

A file of JSON lines like a ledger's, 0600 in a 0700 folder, locked while the copy runs and removed
when all is written. It holds names, never a value: the value is in the store that was written
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sealpipe.errors import StateError
from sealpipe.parsing import format_time, parse_time
from sealpipe.state.files import remove_file
from sealpipe.state.ledger import FileLedger, open_file

_HEAD: Final = {"schema": 1, "kind": "copy"}


class CopyRecord(FileLedger):
    """The record of one copy, open and locked until `close()` or `end()`."""

    marker: str = ""
    """The marker of the copy; empty before `begin`."""
    begun_at: datetime | None = None

    def begin(self, marker: str, now: datetime | None = None) -> None:
        """Record that a new copy begins: states of an earlier one no longer count."""
        self._note([{"begun": {"marker": marker, "at": format_time(now or datetime.now(UTC))}}])

    def state(self, target: str) -> str:
        """Return how far the write to a target is; empty if not begun."""
        return self.write_state(self.marker, target)

    def note(self, target: str, state: str) -> None:
        """Record how far the write to a target is. Raises StateError."""
        self.note_write(self.marker, target, state)

    def has_writes(self) -> bool:
        """Return whether anything is written, or may be."""
        return any(
            marker == self.marker and state != "not stored"
            for (marker, _), state in self._write_states.items()
        )

    def end(self) -> None:
        """Remove the record, because nothing is left to do. Raises StateError."""
        try:
            if self.path is not None:
                remove_file(self.path)
        except OSError as error:
            raise StateError(
                f"all is copied, but {self.path} cannot be removed: {error.strerror}",
                remedy="remove it: the next copy would go on with this one",
            ) from None
        finally:
            self.close()

    def _apply(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"begun": {"marker": str(marker), "at": str(at)}}:
                self.marker, self.begun_at = marker, parse_time(at)
            case _:
                super()._apply(event)


def open_copy_record(folder: Path, name: str) -> CopyRecord | None:
    """Open and lock the record of a copy, or make one; None if another process has it open.

    Raises StateError.
    """
    return open_file(CopyRecord, folder / f"{name}.jsonl", _HEAD)
