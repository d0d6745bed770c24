"""Poll several requests, each with its own outcome.

In turn, within the plan's rate limit, until time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sealpipe import actions, policy
from sealpipe.collect.check import load_check
from sealpipe.collect.collection import RequestCollector
from sealpipe.collect.open import OpeningKey, load_keys
from sealpipe.collect.options import CollectPlan, SubmissionCheck, plan_sample_writes
from sealpipe.collect.results import CallbackError, CollectResult, Progress, ProgressReporter
from sealpipe.errors import SealpipeError
from sealpipe.plugin import OutgoingAction
from sealpipe.plugin.context import CALLER
from sealpipe.polling import FATAL, RATE, TRANSIENT, choose_interval
from sealpipe.reference import parse
from sealpipe.requirements import check_needs
from sealpipe.session import Session
from sealpipe.sinks.write import check_targets


def collect(
    session: Session,
    plan: CollectPlan,
    *,
    dry_run: bool = False,
    tick: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[CollectResult]:
    """Collect all requests, and return their results in order.

    `dry_run`: submissions are decrypted, but nothing is stored, expired or reported to observers.
    `tick` is the interval in seconds at which `on_progress` is called while waiting; None: at each
    poll. Raises only errors that concern all requests, and what `on_progress` raises.
    """
    # Before results and files use the codes.
    session.check_clear(plan.pick, *(job.short_code for job in plan.jobs))
    check = None
    if plan.check is not None:
        check = load_check(session.registry, plan.check)

    def work(session: Session) -> list[CollectResult]:
        return _collect(session, plan, check, tick, clock, dry_run=dry_run)

    if not session.policy_hooks:
        return work(session)
    action = describe_collect(session, plan)
    if plan.after == "expire" and not dry_run:
        for job in plan.jobs:
            policy.check_policies(
                session,
                partial(actions.describe_ending, session, "expire", "request", job.short_code),
            )
    if dry_run:  # it changes nothing, but policies are still checked
        policy.check_policies(session, lambda: action)
        return work(session)
    return policy.run_under_policy(session, action, work, lambda _: None)  # each was reported


def describe_collect(session: Session, plan: CollectPlan) -> OutgoingAction:
    """Describe a collection: where the key is read and where values are written.

    The caller counts as a sink.
    """
    keys: list[object] = [] if plan.key == "credential" else [plan.key]
    if plan.key == "credential":
        receipts = [
            job.receipt for job in plan.jobs if job.receipt is not None and job.receipt.key == "new"
        ]
        keys += [receipt.seed for receipt in receipts if receipt.seed is not None]
    refs = [parse(key, "the key") if isinstance(key, str) else key for key in keys]
    names = [target.ref.name for job in plan.jobs for target, _ in job.mappings]
    sinks = actions.identify_all(
        session, "sink", [*names, *(["dir"] if plan.folder is not None else [])]
    )
    return OutgoingAction(
        "collect",
        sources=actions.identify_sources(session, refs),
        sinks=sinks or (CALLER,),
        short_codes=tuple(job.short_code for job in plan.jobs),
        service=session.base_url,
        check=plan.check or "",
    )


def _collect(
    session: Session,
    plan: CollectPlan,
    check: SubmissionCheck | None,
    tick: float | None,
    clock: Callable[[], float],
    *,
    dry_run: bool,
) -> list[CollectResult]:
    report = ProgressReporter(plan.on_progress)
    try:
        collectors = _start_collectors(session, plan, report, clock, check=check, dry_run=dry_run)
        _poll(session, plan, collectors, report, tick, clock)
    except CallbackError as raised:
        error = raised.error
    else:
        results = [collector.result for collector in collectors if collector.result is not None]
        for result in results if not dry_run else ():
            result.warnings += _report_collect(session, result)
        return results
    raise error


def _report_collect(session: Session, result: CollectResult) -> tuple[str, ...]:
    """Notify every observer of what was collected and stored.

    Returns a warning for an observer that fails.
    """
    problem = result.problem()
    event = {
        "event": "collect",
        "short_code": result.short_code,
        "outcome": result.status if problem is None else type(problem).__name__,
        "count": result.count,
        "unreadable": len(result.unreadable),
        "stored": [f"{each.target}#{','.join(each.keys)}" for each in result.stored],
        "ended": result.ended is not None,
    }
    return policy.notify_observers(session, event)


def _start_collectors(
    session: Session,
    plan: CollectPlan,
    report: ProgressReporter,
    clock: Callable[[], float],
    *,
    check: SubmissionCheck | None,
    dry_run: bool,
) -> list[RequestCollector]:
    """Make a collector for each request, with its keys. Keys shared by all are loaded once."""
    if len(plan.needs) > 1:
        check_needs(session.registry, plan.needs)
    for job in plan.jobs:
        check_targets(session, job.targets, plan_sample_writes(job))
    collectors: list[RequestCollector] = []
    keys_by_seed: dict[str | None, tuple[OpeningKey, ...] | SealpipeError] = {}
    for job in plan.jobs:
        seed = None if job.receipt is None or job.receipt.key != "new" else job.receipt.seed
        if seed not in keys_by_seed:
            try:
                keys_by_seed[seed] = load_keys(session, plan.key, job.receipt)
            except SealpipeError as error:
                if seed is None or plan.key != "credential":
                    raise
                keys_by_seed[seed] = error
        keys = keys_by_seed[seed]
        known = () if isinstance(keys, SealpipeError) else keys
        collectors.append(
            RequestCollector(session, job, plan, known, report, clock, check=check, dry_run=dry_run)
        )
        if isinstance(keys, SealpipeError):
            collectors[-1].fail(keys)
    return collectors


def _poll(
    session: Session,
    plan: CollectPlan,
    collectors: Sequence[RequestCollector],
    report: ProgressReporter,
    tick: float | None,
    clock: Callable[[], float],
) -> None:
    started = clock()
    allowance = RequestBudget(clock)
    state_checked_at = -STATE_INTERVAL

    def wait_for_budget(polls: int, count: int) -> float:
        """Wait until the budget allows so many polls, and return the seconds that are left."""
        remaining = plan.seconds - (clock() - started)
        if remaining > 0:
            _wait(session, min(remaining, allowance.spend(polls)), remaining, count, report, tick)
        return plan.seconds - (clock() - started)

    while True:
        elapsed = clock() - started
        check_state = elapsed - state_checked_at >= STATE_INTERVAL or elapsed >= plan.seconds
        state_checked_at = elapsed if check_state else state_checked_at
        _poll_round(
            session, _select_open(collectors), wait_for_budget, report, check_state=check_state
        )
        remaining, open_collectors = plan.seconds - (clock() - started), _select_open(collectors)
        # The last poll of each comes when time is up, not before.
        if not open_collectors or elapsed >= plan.seconds:
            break
        count = len(open_collectors)
        delay = min(remaining, choose_interval(clock() - started, count))
        if allowance.predict_allowance(delay, count, remaining) < min(2 * count, BURST):
            delay = remaining  # the last poll of each, with its state, replaces this one
        _wait(session, delay, remaining, count, report, tick)
    for collector in _select_open(collectors):
        collector.give_up()


def _select_open(collectors: Sequence[RequestCollector]) -> list[RequestCollector]:
    """Return the collectors without a result.

    Recently failed ones come last, so that they delay no other.
    """
    return sorted(
        (collector for collector in collectors if collector.result is None),
        key=lambda collector: collector.failures,
    )


def _poll_round(
    session: Session,
    collectors: Sequence[RequestCollector],
    wait_for_budget: Callable[[int, int], float],
    report: ProgressReporter,
    *,
    check_state: bool,
) -> None:
    """Poll each request once.

    If the service is unavailable and there is time, the others wait for the next round.
    """
    for number, collector in enumerate(collectors):
        remaining = wait_for_budget(2 if check_state else 1, len(collectors) - number)
        try:
            collector.poll(session.start_budget(), check_state=check_state)
        except TRANSIENT as error:
            collector.record_failure(error)
            report(
                Progress(
                    "trouble",
                    collector.short_code,
                    len(collectors),
                    max(remaining, 0.0),
                    detail=error.message,
                )
            )
            if remaining > 0:
                return
        except FATAL as error:
            for each in collectors[number:]:
                each.fail(error)
            return
        except SealpipeError as error:
            collector.fail(error)


def _wait(
    session: Session,
    delay: float,
    total: float,
    waiting: int,
    report: ProgressReporter,
    tick: float | None,
) -> None:
    remaining = delay
    while remaining > 0:
        step = remaining if tick is None else min(tick, remaining)
        report(
            Progress(
                "waiting", waiting=waiting, left=total - (delay - remaining), next_look=remaining
            )
        )
        session.wait(step)
        remaining -= step


STATE_INTERVAL: Final = 600.0
"""Seconds between checks of a request's state."""
BURST: Final = 100.0
"""Maximum burst of polls after a quiet period: half of that plan's burst."""


class RequestBudget:
    """The rate of all polls together, as a token bucket.

    The service's own, at half its size and rate.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tokens, self._at = BURST, clock()

    def predict_allowance(self, delay: float, polls: int, remaining: float) -> float:
        """Return how many polls may be sent `remaining` seconds on, if `polls` go after `delay`."""
        now = min(BURST, self._tokens + (self._clock() - self._at) * RATE)
        return min(BURST, min(BURST, now + delay * RATE) - polls + (remaining - delay) * RATE)

    def spend(self, requests: int) -> float:
        """Take polls out of the bucket, and return the seconds until they may be sent."""
        now = self._clock()
        self._tokens = min(BURST, self._tokens + (now - self._at) * RATE) - requests
        self._at = now
        return max(0.0, -self._tokens / RATE)
