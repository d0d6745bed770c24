"""Poll many requests at once, each with its own outcome: by turns, within the plan's rate, until time is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sealpipe.errors import (
    AuthenticationError,
    ConnectError,
    PermissionDeniedError,
    RateLimitError,
    RetriesExhaustedError,
    SealpipeError,
)
from sealpipe.flows import Do, Flow, Wait, outgoing, policy
from sealpipe.flows.collect.collection import RequestCollector
from sealpipe.flows.collect.key import OpeningKey, load_keys
from sealpipe.flows.collect.options import CollectOptions, sample_writes
from sealpipe.flows.collect.result import CallbackError, CollectResult, Progress, ProgressReporter
from sealpipe.flows.session import Session
from sealpipe.flows.store.write import describe_writes
from sealpipe.plugin import OutgoingAction

TRANSIENT: Final = (RateLimitError, RetriesExhaustedError, ConnectError)
"""Errors that waiting outlives: 429, 5xx, lost connections. Nothing has changed."""


FATAL: Final = (AuthenticationError, PermissionDeniedError)
"""Errors that every other request would end with, too: nobody asks again."""


def collect(
    session: Session,
    options: CollectOptions,
    *,
    dry_run: bool = False,
    tick: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Flow[list[CollectResult]]:
    """All of them, in their order. Only what concerns every one of them is raised, and what `on_progress` raises.

    `dry_run`: submissions are opened; nothing is stored, expired, or told to observers. `tick` is how often
    `on_progress` is told of the waiting, in seconds; None: at each look.
    """
    session.check_clear(options.pick, *(job.short_code for job in options.jobs))  # before results and files name them
    work = _collect(session, options, tick, clock, dry_run=dry_run)
    if not session.overseers:
        return (yield from work)
    leaving: OutgoingAction = yield Do(partial(outgoing.describe_collect, session, options))
    if options.after == "expire" and not dry_run:
        for job in options.jobs:
            ending = outgoing.describe_ending(session, "expire", "request", job.short_code)
            yield from policy.check_policies(session, ending)
    if dry_run:  # it changes nothing, and shows what a policy would say
        yield from policy.check_policies(session, leaving)
        return (yield from work)
    return (yield from policy.run_under_policy(session, leaving, work, lambda _: None))  # each was told


def _collect(
    session: Session,
    options: CollectOptions,
    tick: float | None,
    clock: Callable[[], float],
    *,
    dry_run: bool,
) -> Flow[list[CollectResult]]:
    tell = ProgressReporter(options.on_progress)
    try:
        works = yield from _start(session, options, tell, clock, dry_run=dry_run)
        yield from _poll(session, options, works, tell, tick, clock)
    except CallbackError as raised:
        error = raised.error
    else:
        results = [work.result for work in works if work.result is not None]
        for result in results if not dry_run else ():
            result.warnings += yield from policy.report_collect(session, result)
        return results
    raise error


def _start(
    session: Session, options: CollectOptions, tell: ProgressReporter, clock: Callable[[], float], *, dry_run: bool
) -> Flow[list[RequestCollector]]:
    """One for each request, its keys in hand. What opens all of them is looked up once."""
    for job in options.jobs:
        yield from describe_writes(session, sample_writes(job))
    works: list[RequestCollector] = []
    rings: dict[str | None, tuple[OpeningKey, ...] | SealpipeError] = {}
    for job in options.jobs:
        own = None if job.receipt is None or job.receipt.key != "new" else job.receipt.seed
        if own not in rings:
            try:
                rings[own] = yield from load_keys(session, options.key, job.receipt)
            except SealpipeError as error:
                if own is None or options.key != "credential":
                    raise
                rings[own] = error
        keys = rings[own]
        known = () if isinstance(keys, SealpipeError) else keys
        works.append(RequestCollector(session, job, options, known, tell, clock, dry_run=dry_run))
        if isinstance(keys, SealpipeError):
            works[-1].fail(keys)
    return works


def _poll(
    session: Session,
    options: CollectOptions,
    works: Sequence[RequestCollector],
    tell: ProgressReporter,
    tick: float | None,
    clock: Callable[[], float],
) -> Flow[None]:
    started = clock()
    allowance = RequestBudget(clock)
    looked_at_state = -STATE_INTERVAL

    def hold_back(looks: int, number: int) -> Flow[float]:
        """Wait until so many looks may leave, while there is time; what is left of that."""
        left = options.seconds - (clock() - started)
        if left > 0:
            yield from _wait(min(left, allowance.take(looks)), left, number, tell, tick)
        return options.seconds - (clock() - started)

    while True:
        passed = clock() - started
        at_state = passed - looked_at_state >= STATE_INTERVAL or passed >= options.seconds
        looked_at_state = passed if at_state else looked_at_state
        yield from _poll_round(session, _open(works), hold_back, tell, at_state=at_state)
        left, open_works = options.seconds - (clock() - started), _open(works)
        if not open_works or passed >= options.seconds:  # the last look at each comes when time is out, not before
            break
        number = len(open_works)
        pause = min(left, look_interval(clock() - started, number))
        if allowance.leaves(pause, number, left) < min(2 * number, BURST):
            pause = left  # the last look is at each of them, and at its state: it comes in place of this one
        yield from _wait(pause, left, number, tell, tick)
    for work in _open(works):
        yield from work.give_up()


def _open(works: Sequence[RequestCollector]) -> list[RequestCollector]:
    """Those that are not over; what failed lately comes last, so that it keeps none of the others waiting for ever."""
    return sorted((work for work in works if work.result is None), key=lambda work: work.troubles)


def _poll_round(
    session: Session,
    works: Sequence[RequestCollector],
    hold_back: Callable[[int, int], Flow[float]],
    tell: ProgressReporter,
    *,
    at_state: bool,
) -> Flow[None]:
    """A look at each. Where the service cannot be asked and there is time, the others wait for the next round."""
    for number, work in enumerate(works):
        left = yield from hold_back(2 if at_state else 1, len(works) - number)
        try:
            yield from work.look(session.budget(), at_state=at_state)
        except TRANSIENT as error:
            work.failed(error)
            yield from tell(Progress("trouble", work.short_code, len(works), max(left, 0.0), detail=error.message))
            if left > 0:
                return
        except FATAL as error:
            for each in works[number:]:
                each.fail(error)
            return
        except SealpipeError as error:
            work.fail(error)


def _wait(pause: float, left: float, number: int, tell: ProgressReporter, tick: float | None) -> Flow[None]:
    remaining = pause
    while remaining > 0:
        step = remaining if tick is None else min(tick, remaining)
        yield from tell(Progress("waiting", waiting=number, left=left - (pause - remaining), next_look=remaining))
        yield Wait(step)
        remaining -= step


FIRST_INTERVAL: Final = 15.0
"""Seconds between looks at first."""
LONGEST_INTERVAL: Final = 120.0
"""Seconds between looks after a long time."""
STATE_INTERVAL: Final = 600.0
"""Seconds between looks at whether a request still can be answered."""
RATE: Final = 50.0 / 60.0
"""Looks a second that all requests take together: half of what the smallest plan allows (specification: Limits)."""
BURST: Final = 100.0
"""Looks that may leave at once after a while without any: half of that plan's burst."""


def look_interval(waited: float, requests: int) -> float:
    """Seconds until the next look at `requests` of them, after `waited` seconds: a twentieth of that, within bounds."""
    return max(min(LONGEST_INTERVAL, max(FIRST_INTERVAL, waited / 20)), requests / RATE)


class RequestBudget:
    """What all looks of a wait may take together, as a bucket: the service's own, at half its size and rate."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left, self._at = BURST, clock()

    def leaves(self, pause: float, looks: int, left: float) -> float:
        """How many may leave at once after `left` seconds, if so many looks leave after `pause` of them."""
        now = min(BURST, self._left + (self._clock() - self._at) * RATE)
        return min(BURST, min(BURST, now + pause * RATE) - looks + (left - pause) * RATE)

    def take(self, requests: int) -> float:
        """Seconds until so many may leave. They count as gone."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) * RATE) - requests
        self._at = now
        return max(0.0, -self._left / RATE)
