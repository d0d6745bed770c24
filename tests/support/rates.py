"""How many requests there are in a minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

MINUTE = 60_000_000
"""In microseconds."""


def most_in_a_minute(times: Iterable[int]) -> int:
    """The most calls that any minute has, whenever it begins."""
    window: deque[int] = deque()
    most = 0
    for moment in sorted(times):
        window.append(moment)
        while window[0] <= moment - MINUTE:
            window.popleft()
        most = max(most, len(window))
    return most
