"""Waiting: how often it looks, what it outlives, and how it ends.

Time is moved by hand, the network is real.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from cli.collect.submitter import Asked, Hours, ask, hours, on, values
from sealpipe.collect.options import CollectPlan, plan_collect
from sealpipe.collect.poll import BURST, RequestBudget
from sealpipe.collect.results import Progress
from sealpipe.errors import NoSubmissionError, PendingError, RetriesExhaustedError
from sealpipe.polling import RATE
from sealpipe_rehearsal.server import start
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.sqlite import Sqlite
from sealpipe_service.plans import PLANS
from support import faults
from support.faults import envelope, says
from support.faulty import Exchange, Fault, Faulty, passes
from support.job import Job, Proxied

HOUR = 3600.0


def waits(*asked: Asked, seconds: float = HOUR) -> CollectPlan:
    return plan_collect([each.code for each in asked], wait=timedelta(seconds=seconds))


def looks(time: Hours, asked: Asked) -> list[float]:
    """The moments at which its submissions were read."""
    return [when for when, path in time.sent if path.endswith(f"{asked.code}/submissions")]


def test_it_looks_every_fifteen_seconds_at_first_and_slower_later(job: Job) -> None:
    asked, time = ask(job), hours(job)
    (collected,) = time.collect(waits(asked))
    assert type(collected.problem()) is PendingError
    found = looks(time, asked)
    assert found[:5] == [0.0, 15.0, 30.0, 45.0, 60.0]
    assert (found[-1], time.now) == (HOUR, HOUR)
    pauses = [later - earlier for earlier, later in pairwise(found)][:-1]
    assert pauses == sorted(pauses)
    assert 100 <= pauses[-1] <= 120
    assert len(time.sent) < 90, "an hour of waiting costs this many requests at most"


def test_an_answer_is_collected_at_the_next_look(job: Job) -> None:
    asked, time = ask(job), hours(job)
    time.at(46, asked.answer)
    (collected,) = time.collect(waits(asked))
    assert values(collected) == [["hunter2", "bob"]]
    assert time.now == 60


def test_it_ends_at_its_time_with_a_last_look(job: Job) -> None:
    asked, time = ask(job), hours(job)
    time.at(99.9, asked.answer)
    (collected,) = time.collect(waits(asked, seconds=100))
    assert values(collected) == [["hunter2", "bob"]]
    assert (time.now, looks(time, asked)[-1]) == (100, 100)


def test_many_are_asked_for_within_the_rate_of_the_smallest_plan(job: Job) -> None:
    # We look in virtual time, it counts in its own.
    job.service.set_account(job.account, requests_per_minute=100_000)
    asked, time = [ask(job, "Password") for _ in range(40)], hours(job)
    time.at(400, asked[7].answer)
    found = time.collect(waits(*asked, seconds=900))
    assert [each.status for each in found] == [
        "collected" if number == 7 else "pending" for number in range(40)
    ]
    rates, allowed = Store(Sqlite()), PLANS["business"].requests_per_minute
    assert allowed == 100
    assert all(rates.take("key", allowed, when) == 0 for when, _ in time.sent)
    assert len(looks(time, asked[0])) > 10


def test_however_many_they_are_they_take_half_of_that_rate_and_half_of_its_burst(job: Job) -> None:
    job.service.set_account(job.account, requests_per_minute=100_000)
    asked, time = [ask(job, "Password") for _ in range(70)], hours(job)
    told: list[Progress] = []
    found = time.collect(waits(*asked, seconds=300), told.append)
    assert {each.status for each in found} == {"pending"}
    rates, half = Store(Sqlite()), PLANS["business"].requests_per_minute // 2
    # When time is out, each is looked at once more, and that is not held back.
    assert all(rates.take("key", half, when) == 0 for when, _ in time.sent if when < 300)
    assert {each.code: looks(time, each)[-1] for each in asked} == {
        each.code: 300 for each in asked
    }
    assert min(len(looks(time, each)) for each in asked) >= 3
    assert all(0 < each.left <= 300 and 0 < each.waiting <= 70 for each in told)


def test_a_spent_budget_is_predicted_to_refill_at_its_rate() -> None:
    now = 12.0
    budget = RequestBudget(lambda: now)
    budget.spend(int(BURST))
    now = 24.0
    assert budget.predict_allowance(delay=0, polls=0, remaining=0) == pytest.approx(12 * RATE)


OUTAGES: dict[str, Fault] = {
    "429 for an hour": envelope(429, 107, {"Retry-After": "3600"}),
    "429 without a time": envelope(429, 107),
    "500": envelope(500, 11),
    "502 in HTML": says(502, "<html>"),
    "503 for a day": says(503, "", {"Retry-After": "86400"}),
    "the connection is cut": faults.reset_before,
    "the answer is cut": faults.half_body,
    "no answer": faults.closes,
}


@pytest.mark.parametrize("name", OUTAGES)
@pytest.mark.parametrize("where", ["", "/submissions"])
def test_an_outage_is_outlived(job: Job, proxied: Proxied, name: str, where: str) -> None:
    asked = ask(job)
    server = proxied(then=on(where or asked.code, OUTAGES[name]))
    time = hours(job, server.base_url)
    told: list[Progress] = []
    time.at(50, asked.answer)
    time.at(200, lambda: server.plan())
    (collected,) = time.collect(waits(asked), told.append)
    assert values(collected) == [["hunter2", "bob"]]
    assert 200 <= time.now < 260
    assert any(each.event == "trouble" and each.left > 0 for each in told)


def test_so_is_a_service_that_refuses_connections(job: Job, proxied: Proxied) -> None:
    asked, server = ask(job), proxied()
    server.refuse()
    time = hours(job, server.base_url)
    time.at(50, asked.answer)
    time.at(200, server.listen)
    (collected,) = time.collect(waits(asked))
    assert values(collected) == [["hunter2", "bob"]]
    assert 200 <= time.now < 260


def test_an_outage_until_the_end_is_reported_as_an_outage(job: Job, proxied: Proxied) -> None:
    asked, server = ask(job), proxied(then=says(502, "<html>"))
    (collected,) = hours(job, server.base_url).collect(waits(asked, seconds=100))
    assert (collected.status, type(collected.problem())) == ("failed", RetriesExhaustedError)
    assert collected.problem().exit_code == 7  # type: ignore[union-attr]


def test_what_cannot_be_waited_out_ends_it_at_once(job: Job, proxied: Proxied) -> None:
    asked = ask(job)
    for fault, code in (
        (says(404, '{"error_code": 70, "message": "no"}'), 6),
        (says(200, "{"), 12),
    ):
        time = hours(job, proxied(then=fault).base_url)
        (collected,) = time.collect(waits(asked))
        assert collected.problem().exit_code == code  # type: ignore[union-attr]
        assert time.now < 30


def test_a_request_that_always_fails_keeps_no_other_waiting(job: Job, proxied: Proxied) -> None:
    bad, good = ask(job), ask(job)
    server = proxied(then=on(f"{bad.code}/submissions", says(502, "<html>")))
    time = hours(job, server.base_url)
    time.at(20, good.answer)
    moments: list[float] = []

    def told(progress: Progress) -> None:
        if progress.event == "answered":
            moments.append(time.now)

    first, second = time.collect(waits(bad, good, seconds=600), told)
    assert (first.status, second.status) == ("failed", "collected")
    assert moments[0] < 120


@pytest.mark.parametrize(
    "fault", [says(401, '{"message":"Unauthorized"}'), says(403, '{"error_code": 78}')]
)
def test_a_credential_that_is_refused_is_refused_for_all_and_asked_once(
    job: Job, proxied: Proxied, fault: Callable[[Exchange], None]
) -> None:
    asked, server = [ask(job), ask(job), ask(job)], proxied(then=fault)
    found = hours(job, server.base_url).collect(waits(*asked))
    assert {each.problem().exit_code for each in found} <= {3, 4}  # type: ignore[union-attr]
    assert len(server.received()) == 1


def test_a_request_that_ends_meanwhile_is_reported_soon(tmp_path: Path) -> None:
    with start() as service:
        job = Job(tmp_path, service)
        answered, silent = (
            ask(job, expires_in=timedelta(minutes=5)),
            ask(job, expires_in=timedelta(minutes=5)),
        )
        time = hours(job)
        time.passes = service.advance
        time.at(280, answered.answer)
        first, second = time.collect(waits(answered, silent, seconds=24 * HOUR))
    assert values(first) == [["hunter2", "bob"]]
    problem = second.problem()
    assert isinstance(problem, NoSubmissionError)
    assert problem.exit_code == 16
    assert 300 <= time.now < 330


def test_an_expiry_from_elsewhere_is_noticed(job: Job) -> None:
    asked, time = ask(job), hours(job)
    time.at(100, asked.end)
    (collected,) = time.collect(waits(asked))
    assert collected.problem().exit_code == 16  # type: ignore[union-attr]
    assert time.now < 800


def test_without_waiting_it_looks_once(job: Job) -> None:
    asked, time = ask(job), hours(job)
    time.collect(waits(asked, seconds=0))
    assert (len(time.sent), time.waited) == (2, [])


def test_a_countdown_is_reported_at_each_tick(job: Job) -> None:
    asked, time = ask(job), hours(job)
    told: list[Progress] = []
    time.collect(waits(asked, seconds=20), told.append, tick=1.0)
    assert [(each.left, each.next_look) for each in told[:3]] == [(20, 15), (19, 14), (18, 13)]
    assert [each.left for each in told] == list(range(20, 0, -1))
    assert {(each.event, each.waiting) for each in told} == {("waiting", 1)}


def test_what_a_listener_raises_ends_the_call_whatever_it_is(job: Job) -> None:
    asked, time = ask(job), hours(job)

    def listener(_: Progress) -> None:
        raise RetriesExhaustedError("its own")

    with pytest.raises(RetriesExhaustedError, match="its own"):
        time.collect(waits(asked), listener)
    assert time.now == 0


def test_a_server_between_is_the_real_one(proxied: Proxied, job: Job) -> None:
    """The faults above are what makes the difference."""
    server: Faulty = proxied(then=passes)
    asked = ask(job)
    asked.answer()
    (collected,) = hours(job, server.base_url).collect(waits(asked))
    assert values(collected) == [["hunter2", "bob"]]
