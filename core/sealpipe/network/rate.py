"""The rate at which requests may be sent, as a value: no clock, no I/O.

The service does not announce its rate limit to every key. Where it does (`per_minute`), requests
are spaced evenly, so no minute ever has more than the limit; a twentieth of it is left for requests
that arrive later than they were sent. Elsewhere nothing is delayed until the first 429. From then
on requests are spaced: further apart after every 429, slightly closer with every other request,
until nothing is limited any more.

A client holds one `RateState` in memory (`sealpipe.network.rate_limiter`), the workers of a batch
share one in a row of their database.
"""

from __future__ import annotations

from math import exp
from typing import Final, NamedTuple

from sealpipe.api.operation import Failure

SECOND: Final = 1_000_000
"""A second in microseconds, the unit of every time here."""
MINUTE: Final = 60 * SECOND
MAX_RETRY_AFTER = 300.0
"""Upper bound for a Retry-After, in seconds: an absurd value must not block a client for good."""
MIN_RATE, MIN_FIRST_RATE, MAX_RATE = 0.5, 1.0, 100.0
"""Requests per second: the lowest rate, the lowest rate to start with, the rate above which nothing
is limited.
"""
SLOWDOWN, SPEEDUP = 0.7, 1.02
IDLE_RESET = 120.0
"""Seconds after which the service's own bucket is full again: its burst is two minutes' worth of
requests.
"""
USED_SHARE: Final = 0.95
"""The part of an announced limit that is used."""
RESERVED_SECONDS = 2.0
"""Seconds reserved for the request itself (or a quarter of its time).

A request sent at the very end would get no response, and a call that certainly had not happened
would have an unknown outcome.
"""
_COUNT_UNIT: Final = 1000  # `recent` is stored in thousandths of a request


class RateState(NamedTuple):
    """What is known of the rate. Times and `spacing` are microseconds of its holder's clock.

    `per_minute` is the announced limit, None if there is none. `spacing` is the learned time
    between two requests, None if nothing was learned. `recent` are the requests of the last minute:
    each counts less with every second. `seen_at` is what the clock was at the last change.
    """

    next_at: int = 0
    slowed_until: int = 0
    slowed_at: int = 0
    last_at: int = 0
    per_minute: int | None = None
    spacing: int | None = None
    recent: int = 0
    seen_at: int = 0

    @property
    def calls_per_minute(self) -> float | None:
        """How many requests a minute are allowed now; None if nothing limits them."""
        spacing = self.get_spacing()
        return MINUTE / spacing if spacing else None

    def count_recent(self, at: int) -> float:
        """Return how many requests a minute are sent at a time.

        Those of the last minute, as `recent` counts.
        """
        return self.recent / _COUNT_UNIT * exp(-max(0, at - self.last_at) / MINUTE)

    def get_spacing(self) -> int:
        """Return the time between requests: the longer of the announced and the learned, or 0."""
        if self.per_minute is None or self.per_minute < 1:
            return self.spacing or 0
        return max(round(MINUTE / (self.per_minute * USED_SHARE)), self.spacing or 0)

    def reserve(self, now: int) -> tuple[RateState, int]:
        """Reserve the next request: the new state, and the time from which it may be sent."""
        state = self._follow_clock(now)
        spacing = state.spacing
        if spacing is not None:
            is_idle = now - max(state.last_at, state.slowed_until) > IDLE_RESET * SECOND
            spacing = round(spacing / SPEEDUP)
            if is_idle or spacing < SECOND / MAX_RATE:
                spacing = None
            state = state._replace(spacing=spacing)
        start = max(now, state.next_at, state.slowed_until)
        recent = _COUNT_UNIT + round(state.count_recent(start) * _COUNT_UNIT)
        next_at = start + state.get_spacing()
        return state._replace(next_at=next_at, last_at=start, recent=recent), start

    def slow_down(self, now: int, retry_after: float | None, sent_at: int) -> RateState:
        """Return the state after a 429 to the request that was reserved for `sent_at`.

        `retry_after` is in seconds.
        """
        state = self._follow_clock(now)
        seconds = 0.0 if retry_after is None else min(max(retry_after, 0.0), MAX_RETRY_AFTER)
        state = state._replace(slowed_until=max(state.slowed_until, now + round(seconds * SECOND)))
        if sent_at <= state.slowed_at:  # sent before we slowed down: it says nothing new
            return state
        before = state.get_spacing()
        if before >= SECOND / MAX_RATE:
            spacing = min(round(before / SLOWDOWN), round(SECOND / MIN_RATE))
        else:  # nothing limited it: nothing is announced, or more than could be sent
            # The requests of the last minute are about the burst: twice the rate per minute
            # (specification: Limits).
            spacing = round(SECOND / max(MIN_FIRST_RATE, state.recent / _COUNT_UNIT / 2.0 / 60))
        state = state._replace(slowed_at=now, spacing=max(spacing, before))
        return state._replace(next_at=max(state.next_at, state.last_at + state.get_spacing()))

    def _follow_clock(self, now: int) -> RateState:
        """Return the state by a clock that was set back since the last change.

        The same one by any other clock.
        """
        back = self.seen_at - now
        if back <= 0:
            return self._replace(seen_at=now)
        return self._replace(
            seen_at=now,
            next_at=self.next_at - back,
            slowed_until=self.slowed_until - back,
            slowed_at=self.slowed_at - back,
            last_at=self.last_at - back,
        )


def refuse_delay(delay: float, remaining: float) -> Failure | None:
    """Return the failure of a call whose `delay` does not fit into `remaining`, or None."""
    if delay < remaining - min(RESERVED_SECONDS, remaining / 4):
        return None
    return Failure(
        sent=False,
        detail="the service asked to wait longer than the deadline allows",
        retry_after=round(delay, 3),
    )
