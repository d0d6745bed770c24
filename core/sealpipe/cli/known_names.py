"""What this machine knows of shares and requests, beside what the service lists.

Name, title, state.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.local import find_state_folder
from sealpipe.errors import StateError
from sealpipe.state.creations import Creation, Kind, find_creation

UNKNOWN = "-"


def find_notes_folder(values: Mapping[str, Any], name: str) -> Path | None:
    """Return the folder of notes on what this machine created or expired, or None."""
    try:
        return find_state_folder(values, name)
    except StateError:
        return None


class KnownNames:
    """Looks up names and titles of one service's shares or requests."""

    def __init__(self, values: Mapping[str, Any], kind: Kind, base_url: str) -> None:
        self._folder = find_notes_folder(values, "created")
        self._kind: Kind = kind
        self._base_url = base_url

    def find(self, short_code: str) -> Creation | None:
        """Return what is known of it; None if nothing is."""
        return (
            None
            if self._folder is None
            else find_creation(self._folder, self._base_url, self._kind, short_code)
        )

    def describe(self, short_code: str, state: str | None) -> dict[str, Any]:
        """Return its name, title and state as JSON members."""
        known = self.find(short_code)
        return {"name": known and known.name, "title": known and known.title, "state": state}

    def list_cells(self, short_code: str, state: str | None) -> list[str]:
        """Return its state, name and title as cells of a line."""
        members = self.describe(short_code, state)
        return [render.escape(members[name] or UNKNOWN) for name in ("state", "name", "title")]


def find_state(expires_at: datetime | None) -> str:
    """Return the state of a listed share: `active`, or `expired` since the service listed it."""
    return "expired" if expires_at is not None and expires_at <= datetime.now(UTC) else "active"
