"""A service with a rate limit and callers who share one client's limiter, on a clock of their own:
no time passes.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from sealpipe.api.operation import Response
from sealpipe.network.rate_limiter import RateLimiter, Ticket


@dataclass
class Clock:
    """Monotonic seconds that only the simulation moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Service:
    """A token bucket by the specification's Limits: the burst is twice what a minute fills in."""

    per_minute: float
    held: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.held = 2 * self.per_minute

    def answer(self, now: float) -> Response:
        self.held = min(2 * self.per_minute, self.held + (now - self.at) * self.per_minute / 60)
        self.at = now
        if self.held >= 1:
            self.held -= 1
            return Response(201, {}, b"")
        wait = max(1, math.ceil((1 - self.held) * 60 / self.per_minute))
        return Response(429, {"retry-after": str(wait)}, b"")


@dataclass
class Outcome:
    """What came of it: when each request left, how many were refused, and the most tries that one
    call took.
    """

    left: list[float] = field(default_factory=list)
    refused: int = 0
    tries: int = 0
    longest: float = 0.0
    """Seconds that the slowest call took."""


def simulate(
    service: Service,
    calls: int,
    callers: int,
    latency: float = 0.05,
    limiter: RateLimiter | None = None,
) -> Outcome:
    """`callers` make `calls` calls between them, each repeated until it is not refused."""
    clock = Clock()
    if limiter is None:
        limiter = RateLimiter(clock)
    else:
        clock = limiter._clock  # type: ignore[assignment]  # the test gave it
    outcome = Outcome()
    events: list[tuple[float, int, str, list[float], Ticket | None]] = []
    for number in range(callers):
        heapq.heappush(events, (clock.now, number, "ask", [clock.now, 0], None))
    number, begun = callers, callers
    while events:
        clock.now, _, what, call, ticket = heapq.heappop(events)
        number += 1
        ticket = ticket or Ticket()
        if what == "ask":
            pause = limiter.reserve(ticket)
            if pause:
                heapq.heappush(events, (clock.now + pause, number, "ask", call, ticket))
            else:
                outcome.left.append(clock.now)
                call[1] += 1
                heapq.heappush(events, (clock.now + latency, number, "answer", call, ticket))
            continue
        answer = service.answer(clock.now)
        limiter.record(ticket, answer)
        if answer.status == 429:
            outcome.refused += 1
            wait = float(answer.headers["retry-after"])
            heapq.heappush(events, (clock.now + wait, number, "ask", call, None))
            continue
        outcome.tries = max(outcome.tries, int(call[1]))
        outcome.longest = max(outcome.longest, clock.now - call[0])
        if begun < calls:
            begun += 1
            heapq.heappush(events, (clock.now, number, "ask", [clock.now, 0], None))
    return outcome
