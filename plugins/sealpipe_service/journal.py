"""What the service tells whoever runs it: events, notes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True)
class Event:
    """An event of the specification: the account whose endpoints receive it, and the payload."""

    at: datetime
    account: str
    payload: Mapping[str, object]


OWNER_NOTIFIED = "owner.notified"
"""A note that the owner of a share asked for."""


@dataclass(frozen=True)
class Note:
    """A note for the operator and the owner, such as a compromised key.

    `message` says what to do.
    """

    at: datetime
    what: str
    about: str
    message: str = ""


class Journal(Protocol):
    """Takes events, notes and counts, from any thread."""

    def add_event(self, event: Event) -> None:
        """Add an event."""

    def add_note(self, note: Note) -> None:
        """Add a note."""

    def count(self, what: str, *labels: str) -> None:
        """Count what is no news, for one of the metrics of `meters`."""
