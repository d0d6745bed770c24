"""The rate limiter: a 429 makes the whole client wait; afterwards its requests are sent one by one.

The service does not announce its rate limit. Until the first 429 nothing is delayed. From then on a
token bucket of size one spaces the requests: further apart after every 429, slightly closer after
every other response, until it no longer limits anything.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from math import exp

from sealpipe.api.operation import Failure, Response
from sealpipe.api.responses import parse_retry_after

MAX_RETRY_AFTER = 300.0
"""Upper bound for a Retry-After, in seconds: an absurd value must not block a client for good."""
MINUTE = 60.0
MIN_RATE, MIN_FIRST_RATE, MAX_RATE = 0.5, 1.0, 100.0
"""Requests per second: the lowest rate, the lowest rate to start with, the rate above which nothing
is limited.
"""
SLOWDOWN, SPEEDUP = 0.7, 1.02
IDLE_RESET = 120.0
"""Seconds after which the service's own bucket is full again: its burst is two minutes' worth of
requests.
"""

MAX_SLEEP = 1.0
"""Seconds to sleep at most before checking again: requests ahead may have left, or the rate gone
up, meanwhile.
"""

RESERVED_SECONDS = 2.0
"""Seconds reserved for the request itself (or a quarter of its time).

A request sent at the very end would get no response, and a call that certainly had not happened
would have an unknown outcome.
"""


def refuse_delay(delay: float, remaining: float) -> Failure | None:
    """Return the failure of a call whose `delay` leaves too few of the `remaining` seconds; None if
    it fits.
    """
    if delay < remaining - min(RESERVED_SECONDS, remaining / 4):
        return None
    return Failure(
        sent=False,
        detail="the service asked to wait longer than the deadline allows",
        retry_after=round(delay, 3),
    )


class Ticket:
    """A request that waits to be sent."""

    __slots__ = ("sent_at",)

    def __init__(self) -> None:
        self.sent_at = 0.0
        """When it was sent, in seconds of the limiter's clock."""


class RateLimiter:
    """Decides when a request may be sent, for all calls of one client: first come, first served.

    `clock` returns seconds that never go backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[Ticket] = deque()
        self._not_before = 0.0
        self._rate: float | None = None
        self._last_sent_at = self._slowed_at = clock()
        self._recent_count = 0.0  # recent requests: each counts a little less with every second

    def wait(self, ticket: Ticket, end: float, sleep: Callable[[float], object]) -> Failure | None:
        """Sleep until a request may be sent, and return None; its failure if that cannot be before
        `end`.
        """
        try:
            while delay := self.reserve(ticket):
                refusal = refuse_delay(delay, end - self._clock())
                if refusal is not None:
                    return refusal
                sleep(min(delay, MAX_SLEEP))
        finally:
            self.cancel(ticket)
        return None

    def reserve(self, ticket: Ticket) -> float:
        """Return 0.0 if the request may be sent now, otherwise the seconds after which to check
        again.
        """
        with self._lock:
            now = self._clock()
            delay = self._compute_delay(ticket, now)
            if delay <= 0.0:
                self._remove(ticket)
                self._recent_count = 1.0 + self._recent_count * exp(
                    (self._last_sent_at - now) / MINUTE
                )
                self._last_sent_at = ticket.sent_at = now
                return 0.0
            return delay

    def cancel(self, ticket: Ticket) -> None:
        """Remove a request that will not be sent."""
        if self._waiting:
            with self._lock:
                self._remove(ticket)

    def record(self, ticket: Ticket, result: Response | Failure) -> None:
        """Adjust the rate to the result of a request that was sent."""
        if not isinstance(result, Response) or (result.status != 429 and self._rate is None):
            return
        with self._lock:
            if result.status == 429:
                self._slow_down(ticket, parse_retry_after(result.headers.get("retry-after")))
            elif self._rate is not None and ticket.sent_at > self._slowed_at:
                self._rate = self._rate * SPEEDUP if self._rate < MAX_RATE else None

    def _compute_delay(self, ticket: Ticket, now: float) -> float:
        if self._rate is None or now - max(self._last_sent_at, self._not_before) > IDLE_RESET:
            self._rate = None
            return self._not_before - now
        if ticket not in self._waiting:
            self._waiting.append(ticket)
        interval = 1.0 / self._rate
        return (
            max(self._not_before, self._last_sent_at + interval)
            + interval * self._waiting.index(ticket)
            - now
        )

    def _remove(self, ticket: Ticket) -> None:
        if ticket in self._waiting:
            self._waiting.remove(ticket)

    def _slow_down(self, ticket: Ticket, seconds: float | None) -> None:
        now = self._clock()
        if seconds is not None:
            self._not_before = max(self._not_before, now + min(seconds, MAX_RETRY_AFTER))
        if self._rate is None:
            # The requests of the last minute are about the burst: twice the rate per minute
            # (specification: Limits).
            self._rate = max(MIN_FIRST_RATE, self._recent_count / 2.0 / MINUTE)
        elif (
            ticket.sent_at > self._slowed_at
        ):  # a request sent before we slowed down says nothing new
            self._rate = max(MIN_RATE, self._rate * SLOWDOWN)
        else:
            return
        self._slowed_at = now
