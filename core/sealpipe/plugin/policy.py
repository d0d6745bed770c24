"""What a policy sees before anything leaves, and what an observer is told. Never a value, never a fragment."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Outgoing(NamedTuple):
    """A share or request that is about to be made. `views` and `expires_at` are None where there is no end."""

    kind: str
    labels: tuple[tuple[str, str], ...]
    """Label and type of each field."""
    sources: tuple[str, ...]
    """The stores that were read, by name."""
    recipients: tuple[str, ...]
    """Every target of a channel, as `channel:to`."""
    expires_at: datetime | None
    views: int | None
    """How often a share may be opened, or a request answered."""
    title: str | None = None


class Refusal(Exception):  # it is an answer, not an error of the program
    """Raised by a policy: the reason, for people, without anything secret."""
