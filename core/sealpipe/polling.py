"""How often the service is asked for what changes, and which errors a poll outlives."""

from __future__ import annotations

from typing import Final

from sealpipe.errors import (
    AuthenticationError,
    ConnectError,
    PermissionDeniedError,
    RateLimitError,
    RetriesExhaustedError,
)

TRANSIENT: Final = (RateLimitError, RetriesExhaustedError, ConnectError)
"""Temporary errors: 429, 5xx, lost connections. Nothing has changed."""
FATAL: Final = (AuthenticationError, PermissionDeniedError)
"""Errors that every other request would also get: polling ends."""

FIRST_INTERVAL: Final = 15.0
"""Seconds between polls at first."""
LONGEST_INTERVAL: Final = 120.0
"""Maximum seconds between polls, reached after a long time."""
RATE: Final = 50.0 / 60.0
"""Polls per second for all requests together: half of what the smallest plan allows (specification:
Limits).
"""


def choose_interval(elapsed: float, polled: int) -> float:
    """Return the seconds until the next poll of so many requests or shares.

    A twentieth of those elapsed, within bounds.
    """
    return max(min(LONGEST_INTERVAL, max(FIRST_INTERVAL, elapsed / 20)), polled / RATE)
