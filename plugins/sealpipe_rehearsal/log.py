"""The log of a rehearsal: all requests as received, events and notes. Bounded, in memory."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from sealpipe_service.journal import Event, Note

MAX_ENTRIES = 2_000
MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class LoggedRequest:
    """One request as the service received it. `target` is the raw path with its query.

    Headers and body are not in its repr, which failing tests print.
    """

    at: datetime
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    fault: str | None = None
    """The injected fault, such as `reset after the commit`."""

    def __bytes__(self) -> bytes:
        """Return head and body, for tests that search for forbidden contents."""
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f"{self.method} {self.target}\r\n{head}\r\n".encode("latin-1") + self.body


class Log:
    """The newest entries of each kind.

    The oldest requests are dropped once there are too many or too many bytes.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._requests: deque[LoggedRequest] = deque()
        self._events: deque[Event] = deque(maxlen=max_entries)
        self._notes: deque[Note] = deque(maxlen=max_entries)

    def add_request(self, request: LoggedRequest) -> None:
        """Add a request."""
        with self._lock:
            self._requests.append(request)
            self._bytes += len(request.body)
            while len(self._requests) > self._max_entries or (
                self._bytes > self._max_bytes and len(self._requests) > 1
            ):
                self._bytes -= len(self._requests.popleft().body)

    def add_event(self, event: Event) -> None:
        """Add an event."""
        with self._lock:
            self._events.append(event)

    def count(self, what: str, *labels: str) -> None:
        """Do nothing: nobody reads numbers of a rehearsal."""

    def add_note(self, note: Note) -> None:
        """Add a note."""
        with self._lock:
            self._notes.append(note)

    def requests(self) -> list[LoggedRequest]:
        """Return the requests, oldest first."""
        with self._lock:
            return list(self._requests)

    def events(self) -> list[Event]:
        """Return the events, oldest first."""
        with self._lock:
            return list(self._events)

    def notes(self) -> list[Note]:
        """Return the notes, oldest first."""
        with self._lock:
            return list(self._notes)

    def clear(self) -> None:
        """Delete all entries."""
        with self._lock:
            self._bytes = 0
            for entries in (self._requests, self._events, self._notes):
                entries.clear()
