"""What a server tells whoever runs it: a line of JSON on stderr for each thing.

No line holds what callers or the database sent: of an error its type and place are told, not its
message.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime

from .clock import format_rfc3339
from .journal import Event, Note

_logger = logging.getLogger("sealpipe_service")


class JsonLines(logging.Formatter):
    """Formats a record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        told: dict[str, object] = {
            "time": format_rfc3339(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "process": os.getpid(),
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
            told["at"] = [
                f"{frame.filename}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(record.exc_info[2])
            ]
        return json.dumps(told)


def start_logging() -> None:
    """Log to stderr from now on: what others' libraries say only from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    _logger.setLevel(logging.INFO)


class LoggedJournal:
    """The journal of a server: notes are lines of the log, events go to webhooks alone."""

    def add_event(self, event: Event) -> None:
        """Do nothing: its deliveries are queued."""

    def add_note(self, note: Note) -> None:
        """Log a note."""
        _logger.warning("%s: %s", note.what, " ".join(filter(None, (note.about, note.message))))
