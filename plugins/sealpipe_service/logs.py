"""What a server tells whoever runs it: a line of JSON on stderr for each thing.

No line holds what callers or the database sent: of an error its type and place are told, not its
message, and of what another library says only what stands in its own source.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime

from .clock import format_rfc3339
from .journal import OWNER_NOTIFIED, Event, Note
from .meters import Meters

_logger = logging.getLogger("sealpipe_service")


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        told: dict[str, object] = {**getattr(record, "told", {})}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
            told["at"] = [
                f"{frame.filename}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(record.exc_info[2])
            ]
        now = datetime.fromtimestamp(record.created, UTC)
        return make_line(now, record.levelname.lower(), _read_message(record), told)


def make_line(now: datetime, level: str, message: str, told: Mapping[str, object]) -> str:
    """Return a line of the log, without its end."""
    first = {
        "time": format_rfc3339(now),
        "level": level,
        "process": os.getpid(),
        "message": message,
    }
    return json.dumps({**first, **told})


def _read_message(record: logging.LogRecord) -> str:
    """Return what a record says: of one that is not ours the first line, before values are put in.

    asyncio writes the error that a task ended with into the lines after it.
    """
    if record.name.partition(".")[0] == _logger.name:
        return record.getMessage()
    first, _, _ = str(record.msg).partition("\n")
    return f"{record.name}: {first}"


def start_logging() -> None:
    """Log to stderr from now on: what others' libraries say only from warnings up.

    That is also where warnings go, and errors that nothing has handled.
    """
    logging.raiseExceptions = False  # where nobody reads stderr, there is nobody to tell
    # No line tells them, and each would be looked up for each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    warnings.showwarning = _log_warning
    sys.excepthook = lambda _, error, __: _log_unhandled("an error that ends the process", error)
    threading.excepthook = lambda args: _log_unhandled("a thread ended", args.exc_value)
    sys.unraisablehook = lambda args: _log_unhandled("an error was ignored", args.exc_value)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    _logger.setLevel(logging.INFO)


def _log_unhandled(what: str, error: BaseException | None) -> None:
    _logger.error(what, exc_info=error)


def _log_warning(
    message: Warning | str,  # noqa: ARG001  # it may hold a value
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,  # noqa: ARG001
    line: object = None,  # noqa: ARG001
) -> None:
    _logger.warning("%s at %s:%s", category.__name__, filename, lineno)


class LoggedJournal:
    """The journal of a server: notes are lines of the log, events go to webhooks alone."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    def add_event(self, event: Event) -> None:
        """Do nothing: its deliveries are queued."""

    def add_note(self, note: Note) -> None:
        """Log a note, unless it is about a share: a log has no codes."""
        if note.what != OWNER_NOTIFIED:
            about = " ".join(filter(None, (note.about, note.message)))
            _logger.warning("%s: %s", note.what, about)

    def count(self, what: str, *labels: str) -> None:
        """Count."""
        self._meters.add(what, *labels)
