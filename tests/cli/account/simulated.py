"""A service with a rate limit and callers who share one client's limiter, on a clock of their own:
no time passes.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from sealpipe.api.operation import Response
from sealpipe.network.rate import SECOND
from sealpipe.network.rate_limiter import RateLimiter


@dataclass
class Clock:
    """Seconds that only the simulation moves. Called, it returns microseconds."""

    now: float = 1000.0

    def __call__(self) -> int:
        return round(self.now * SECOND)


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


@dataclass(eq=False)
class Turn:
    """A request that waits to be sent, or was sent at a time of the limiter's clock."""

    at: int = 0


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
    events: list[tuple[float, int, str, list[float], Turn | None]] = []
    for number in range(callers):
        heapq.heappush(events, (clock.now, number, "ask", [clock.now, 0], None))
    number, begun = callers, callers
    while events:
        clock.now, _, what, call, turn = heapq.heappop(events)
        number += 1
        turn = turn or Turn()
        if what == "ask":
            turn.at, pause = limiter.reserve(turn)
            if pause:
                again = clock.now + pause / SECOND
                heapq.heappush(events, (again, number, "ask", call, turn))
            else:
                outcome.left.append(clock.now)
                call[1] += 1
                heapq.heappush(events, (clock.now + latency, number, "answer", call, turn))
            continue
        answer = service.answer(clock.now)
        if answer.status == 429:
            outcome.refused += 1
            wait = float(answer.headers["retry-after"])
            limiter.slow_down(turn.at, wait)
            heapq.heappush(events, (clock.now + wait, number, "ask", call, None))
            continue
        outcome.tries = max(outcome.tries, int(call[1]))
        outcome.longest = max(outcome.longest, clock.now - call[0])
        if begun < calls:
            begun += 1
            heapq.heappush(events, (clock.now, number, "ask", [clock.now, 0], None))
    return outcome
