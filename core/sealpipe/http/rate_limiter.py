"""The rate limiter: a 429 makes the whole client wait; afterwards its requests leave one by one.

The service does not tell its rate. Until the first 429 nothing is delayed. From then on a token bucket with room for
one token lets requests go: slower at every further 429, a little faster after every other answer, until it no longer
limits anything.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from math import exp

from sealpipe.api import Failure, Response
from sealpipe.api.refusals import retry_after

LONGEST = 300.0
"""Seconds that a Retry-After holds at most: an absurd one must not end a client for good."""
MINUTE = 60.0
SLOWEST, FIRST, FREE = 0.5, 1.0, 100.0
"""Requests a second: the rate never falls below the first, begins with the second or more, ends above the third."""
SLOWER, FASTER = 0.7, 1.02
IDLE = 120.0
"""Seconds after which a bucket of the service is full again: its burst is twice what a minute fills in."""

AGAIN = 1.0
"""Seconds to sleep at most before asking again: others may have gone, or got faster, meanwhile."""

RESERVE = 2.0
"""Seconds that a request keeps for itself, or a quarter of its time: one that left at the very end would have no
answer, and what had provably not happened would be unknown."""


def refuse_delay(delay: float, left: float) -> Failure | None:
    """Return the failure of a call that may not leave in time: `delay` of the `left` seconds. None: it may."""
    if delay < left - min(RESERVE, left / 4):
        return None
    return Failure(
        sent=False, detail="the service asked to wait for longer than there is time", retry_after=round(delay, 3)
    )


class Ticket:
    """A request that wants to leave."""

    __slots__ = ("left", "refusal")

    def __init__(self) -> None:
        self.left = 0.0
        """When it left."""
        self.refusal: Failure | None = None
        """Why it does not leave at all."""


class RateLimiter:
    """Who may leave when, shared by every call of one client: first come, first served. Seconds, monotonic clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[Ticket] = deque()
        self._not_before = 0.0
        self._rate: float | None = None
        self._left = self._slowed = clock()
        self._recent = 0.0  # how many left lately: each counts a little less with every second

    def delays(self, ticket: Ticket, end: float) -> Iterator[float]:
        """Yield the seconds to sleep before a request leaves; its `refusal` says that it cannot leave before `end`."""
        try:
            while delay := self.delay(ticket):
                ticket.refusal = refuse_delay(delay, end - self._clock())
                if ticket.refusal is not None:
                    return
                yield min(delay, AGAIN)
        finally:
            self.cancel(ticket)

    def delay(self, ticket: Ticket) -> float:
        """Return 0.0 where the request leaves now; else the seconds after which to ask again."""
        with self._lock:
            now = self._clock()
            delay = self._delay(ticket, now)
            if delay <= 0.0:
                self._forget(ticket)
                self._recent = 1.0 + self._recent * exp((self._left - now) / MINUTE)
                self._left = ticket.left = now
                return 0.0
            return delay

    def cancel(self, ticket: Ticket) -> None:
        """Take a request back that does not want to leave any more."""
        if self._waiting:
            with self._lock:
                self._forget(ticket)

    def record(self, ticket: Ticket, result: Response | Failure) -> None:
        """Learn from what came back for a request that left."""
        if not isinstance(result, Response) or (result.status != 429 and self._rate is None):
            return
        with self._lock:
            if result.status == 429:
                self._slow_down(ticket, retry_after(result.headers.get("retry-after")))
            elif self._rate is not None and ticket.left > self._slowed:
                self._rate = self._rate * FASTER if self._rate < FREE else None

    def _delay(self, ticket: Ticket, now: float) -> float:
        if self._rate is None or now - max(self._left, self._not_before) > IDLE:
            self._rate = None
            return self._not_before - now
        if ticket not in self._waiting:
            self._waiting.append(ticket)
        apart = 1.0 / self._rate
        return max(self._not_before, self._left + apart) + apart * self._waiting.index(ticket) - now

    def _forget(self, ticket: Ticket) -> None:
        if ticket in self._waiting:
            self._waiting.remove(ticket)

    def _slow_down(self, ticket: Ticket, seconds: float | None) -> None:
        now = self._clock()
        if seconds is not None:
            self._not_before = max(self._not_before, now + min(seconds, LONGEST))
        if self._rate is None:
            # What left in the last minute is about the burst, and that is twice the rate a minute (Limits).
            self._rate = max(FIRST, self._recent / 2.0 / MINUTE)
        elif ticket.left > self._slowed:  # one that left before we slowed down tells nothing new
            self._rate = max(SLOWEST, self._rate * SLOWER)
        else:
            return
        self._slowed = now
