"""How long to wait between looks. Pure."""

from __future__ import annotations

from typing import Final

FIRST: Final = 15.0
"""Seconds between looks at first."""
SLOWEST: Final = 120.0
"""Seconds between looks after a long time."""
STATE: Final = 600.0
"""Seconds between looks at whether a request still can be answered."""
RATE: Final = 50.0 / 60.0
"""Looks a second that all requests take together: half of what the smallest plan allows (specification: Limits)."""


def pause(waited: float, requests: int) -> float:
    """Seconds until the next look at `requests` of them, after `waited` seconds: a twentieth of that, within bounds."""
    return max(min(SLOWEST, max(FIRST, waited / 20)), requests / RATE)
