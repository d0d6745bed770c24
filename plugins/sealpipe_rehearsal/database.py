"""The database of a rehearsal: it can be emptied, its time moves, and no other rehearsal has it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sealpipe_service.clock import system_clock
from sealpipe_service.database.access import Row
from sealpipe_service.database.sqlite import DatabaseFileError, Sqlite

TABLES = (
    *("idempotency", "deliveries", "webhooks", "accesses", "submissions", "requests"),
    *("shares", "views", "counts", "rates", "keys", "accounts"),
)
"""What is emptied."""


class RehearsalDatabase(Sqlite):
    """A database of which one process has faults, log and clock: no other one may use its file.

    `source` is the time of its machine.
    """

    def __init__(
        self, path: Path | None = None, source: Callable[[], datetime] = system_clock
    ) -> None:
        self.source = source
        self._lock_file = None if path is None else path.with_name(f"{path.name}-lock")
        self._lock = None if self._lock_file is None else _lock(self._lock_file)
        try:
            super().__init__(path, lambda: source().timestamp())
        except BaseException:
            self._unlock()
            raise

    def rows(self, text: str, values: Mapping[str, object]) -> Sequence[Row]:
        """Run any statement and return all its rows."""
        return self.run_text(text, values)

    def row(self, text: str, values: Mapping[str, object]) -> Row | None:
        """Run any statement and return its first row, if any."""
        return next(iter(self.run_text(text, values)), None)

    def offset(self) -> float:
        """Return how many seconds its time is ahead of its machine's."""
        row = self.row("SELECT offset_seconds FROM clock", {})
        return 0.0 if row is None else float(row["offset_seconds"])

    def set_offset(self, seconds: float) -> None:
        """Move its time. The service has no statement for this."""
        self.run_text("UPDATE clock SET offset_seconds = :seconds", {"seconds": seconds})

    def clear(self) -> None:
        """Delete all rows."""
        for table in TABLES:
            self.run_text(f"DELETE FROM {table}")  # noqa: S608  # the names are from above

    def close(self) -> None:
        """Close it, and let others have the file."""
        super().close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None and self._lock_file is not None:
            self._lock_file.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None


def _lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o600)
    except OSError as error:
        raise DatabaseFileError(f"{path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise DatabaseFileError(f"{path}: the database is locked by another rehearsal") from None
    if os.fstat(file).st_nlink == 0:  # whoever had it has just ended
        os.close(file)
        return _lock(path)
    return file
