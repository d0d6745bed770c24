"""Many requests at once, each with its own outcome: looked at by turns, within the plan's rate, until time is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from sealpipe.errors import RateLimited, SealpipeError, TriesSpent, Unreachable
from sealpipe.flows import oversight
from sealpipe.flows.collecting import waiting
from sealpipe.flows.collecting.keys import in_hand
from sealpipe.flows.collecting.one import Collecting
from sealpipe.flows.collecting.planning import CollectPlan, samples
from sealpipe.flows.collecting.result import Collected, OnProgress, Progress, silent
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Flow, Wait
from sealpipe.flows.storing.putting import describe

PASSING: Final = (RateLimited, TriesSpent, Unreachable)
"""Errors that waiting outlives: 429, 5xx, lost connections. Nothing has changed."""


def collect(
    session: Session,
    plan: CollectPlan,
    on_progress: OnProgress = silent,
    *,
    tick: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Flow[list[Collected]]:
    """All of them, in their order. Only what concerns every one of them is raised.

    `tick` is how often `on_progress` is told of the waiting, in seconds; None: at each look.
    """
    works: list[Collecting] = []
    for job in plan.jobs:
        yield from describe(session, samples(job))
        keys = yield from in_hand(session, plan.key, job.receipt)
        works.append(Collecting(session, job, plan, keys, on_progress))
    started = clock()
    looked_at_state = -waiting.STATE
    while True:
        passed = clock() - started
        at_state = passed - looked_at_state >= waiting.STATE or passed >= plan.wait
        looked_at_state = passed if at_state else looked_at_state
        yield from _round(session, _open(works), plan.wait - passed, on_progress, at_state=at_state)
        left, open_works = plan.wait - (clock() - started), _open(works)
        if not open_works or left <= 0:
            break
        pause = min(left, waiting.pause(clock() - started, len(open_works)))
        yield from _wait(pause, left, len(open_works), on_progress, tick)
    for work in _open(works):
        yield from work.give_up()
    results = [work.result for work in works if work.result is not None]
    for result in results:
        result.warnings += yield from oversight.collected(session, result)
    return results


def _open(works: Sequence[Collecting]) -> list[Collecting]:
    return [work for work in works if work.result is None]


def _round(
    session: Session, works: Sequence[Collecting], left: float, tell: OnProgress, *, at_state: bool
) -> Flow[None]:
    """A look at each. Where the service cannot be asked and there is time, the others wait for the next round."""
    for work in works:
        try:
            yield from work.look(session.budget(), at_state=at_state)
        except PASSING as error:
            work.trouble = error
            tell(Progress("trouble", work.short_code, len(works), max(left, 0.0), detail=error.message))
            if left > 0:
                return
        except SealpipeError as error:
            work.fail(error)


def _wait(pause: float, left: float, number: int, tell: OnProgress, tick: float | None) -> Flow[None]:
    remaining = pause
    while remaining > 0:
        step = remaining if tick is None else min(tick, remaining)
        tell(Progress("waiting", waiting=number, left=left - (pause - remaining), next_look=remaining))
        yield Wait(step)
        remaining -= step
