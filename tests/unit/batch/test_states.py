"""A row's states: every transition, what is due when, and random lives of a row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.batch.engine.breaker import choose_retry
from sealpipe.batch.steps.states import (
    HOUR,
    MINUTE,
    TRANSITIONS,
    Due,
    Event,
    ImpossibleEventError,
    Progress,
    Schedule,
    State,
    Step,
    choose_interval,
    find_next,
    get_phase,
    is_over,
    is_troubled,
    move,
    skip_reminders,
)

DAY = 24 * HOUR
OUT = Progress(short_code="c", created_at=0, delivered_at=0, touched_at=0, expires_at=30 * DAY)
"""A request that is out since the beginning of time, for thirty days."""
REMINDED = Schedule(remind_after=(3 * DAY, 7 * DAY), remind_before_expiry=DAY)

SEEN = {State.NEW: Progress(), State.SENDING: Progress(short_code="c"), State.WAITING: OUT}
SEEN[State.ENDING] = replace(OUT, wish="cancel")


def test_every_pair_of_state_and_event_is_in_the_table_or_impossible() -> None:
    for state in State:
        for event in Event:
            progress = SEEN.get(state, OUT)
            phase = get_phase(progress) if is_troubled(state) else state
            expected = TRANSITIONS.get((state, event)) or TRANSITIONS.get((phase, event))
            if event is Event.RECOVERED:
                expected = phase
            if expected is None:
                with pytest.raises(ImpossibleEventError):
                    move(state, progress, event)
            else:
                assert move(state, progress, event) is expected


@pytest.mark.parametrize(
    ("state", "event", "after"),
    [
        (State.NEW, Event.CREATED, State.SENDING),
        (State.NEW, Event.ADOPTED, State.WAITING),
        (State.SENDING, Event.DELIVERED, State.WAITING),
        (State.SENDING, Event.SETTLED, State.DONE),
        (State.WAITING, Event.USED, State.DONE),
        (State.WAITING, Event.EXPIRED, State.EXPIRED),
        (State.WAITING, Event.WITHDRAWN, State.ENDING),
        (State.ENDING, Event.ENDED, State.CANCELLED),
        (State.ENDING, Event.RENEWED, State.NEW),
        (State.WAITING, Event.FAILED, State.FAILED),
    ],
)
def test_the_life_of_a_row(state: State, event: Event, after: State) -> None:
    assert move(state, SEEN[state], event) is after


@pytest.mark.parametrize(
    ("over", "events"),
    [
        (State.DONE, {Event.RENEWED, Event.WITHDRAWN}),
        (State.EXPIRED, {Event.RENEWED}),
        (State.CANCELLED, {Event.RENEWED}),
    ],
)
def test_what_is_over_only_begins_anew(over: State, events: set[Event]) -> None:
    """What is done may still be out: then it is ended first.

    It may have begun anew without this database.
    """
    assert {event for event in Event if (over, event) in TRANSITIONS} == events | {Event.ADOPTED}


@pytest.mark.parametrize("phase", list(SEEN))
@pytest.mark.parametrize("trouble", [State.FAILED, State.BLOCKED])
def test_a_troubled_row_goes_on_from_where_it_was(trouble: State, phase: State) -> None:
    assert move(trouble, SEEN[phase], Event.RECOVERED) is phase
    for event in (Event.CREATED, Event.DELIVERED, Event.USED, Event.ENDED):
        if (phase, event) in TRANSITIONS:
            assert move(trouble, SEEN[phase], event) is TRANSITIONS[phase, event]


def test_a_message_that_may_not_have_arrived_blocks_until_the_link_is_used() -> None:
    unclear = replace(OUT, unclear=("email:a@b.example",))
    assert move(State.BLOCKED, unclear, Event.RECOVERED) is State.BLOCKED
    assert move(State.BLOCKED, unclear, Event.USED) is State.DONE


@pytest.mark.parametrize(
    ("state", "progress", "step"),
    [
        (State.NEW, Progress(), Step.CREATE),
        (State.SENDING, Progress(short_code="c"), Step.DELIVER),
        (State.WAITING, OUT, Step.POLL),
        (State.ENDING, replace(OUT, wish="cancel"), Step.END),
        (State.FAILED, Progress(), Step.CREATE),
        (State.BLOCKED, OUT, Step.POLL),
        (State.DONE, OUT, Step.REST),
        (State.CANCELLED, OUT, Step.REST),
        (State.EXPIRED, OUT, Step.REST),
    ],
)
def test_the_next_step(state: State, progress: Progress, step: Step) -> None:
    assert find_next(state, progress, Schedule(), MINUTE).step is step


@pytest.mark.parametrize(
    ("state", "progress", "step"),
    [
        (State.NEW, Progress(), Step.REST),
        (State.NEW, Progress(is_asked_for=True), Step.CREATE),
        (State.FAILED, Progress(is_asked_for=True), Step.CREATE),
        (State.SENDING, replace(OUT, delivered_at=None), Step.REST),
        (State.SENDING, replace(OUT, delivered_at=None, is_asked_for=True), Step.DELIVER),
        (State.WAITING, replace(OUT, is_asked_for=True), Step.REST),
        (State.ENDING, replace(OUT, wish="cancel"), Step.END),
        (State.FAILED, replace(OUT, wish="reissue"), Step.END),
        (State.CANCELLED, OUT, Step.REST),
    ],
)
def test_only_what_was_asked_for_is_done_for_a_row_that_is_gone(
    state: State, progress: Progress, step: Step
) -> None:
    due = find_next(state, progress, REMINDED, MINUTE, is_gone=True)
    assert (due.step, due.at is None) == (step, step is Step.REST)


@pytest.mark.parametrize(
    ("looked_at", "reminders", "due"),
    [
        (0, 0, Due(Step.POLL, HOUR)),
        (3 * DAY - HOUR, 0, Due(Step.REMIND, 3 * DAY)),
        (3 * DAY - HOUR, 1, Due(Step.POLL, 3 * DAY)),
        (20 * DAY, 0, Due(Step.REMIND, 3 * DAY)),
        (28 * DAY + 23 * HOUR, 2, Due(Step.REMIND, 29 * DAY)),
        (29 * DAY, 3, Due(Step.POLL, 29 * DAY + HOUR)),
        (30 * DAY - MINUTE, 3, Due(Step.POLL, 30 * DAY)),
        (30 * DAY, 3, Due(Step.POLL, 30 * DAY + MINUTE)),
    ],
)
def test_looks_and_reminders_of_a_waiting_row(looked_at: int, reminders: int, due: Due) -> None:
    progress = replace(OUT, looked_at=looked_at, reminders=reminders)
    assert find_next(State.WAITING, progress, REMINDED, HOUR) == due


def test_after_a_pause_only_the_latest_reminder_is_due() -> None:
    late = skip_reminders(replace(OUT, looked_at=0), REMINDED, 20 * DAY)
    assert late.reminders == 2
    assert find_next(State.WAITING, replace(late, looked_at=20 * DAY), REMINDED, 30 * DAY) == Due(
        Step.REMIND, 29 * DAY
    )


def test_no_reminder_is_due_at_or_after_the_expiry_or_before_the_delivery() -> None:
    short = replace(OUT, expires_at=7 * DAY)
    assert REMINDED.list_reminders(short) == [3 * DAY, 6 * DAY]
    assert Schedule(remind_before_expiry=60 * DAY).list_reminders(OUT) == []
    assert Schedule(remind_before_expiry=DAY).list_reminders(replace(OUT, expires_at=None)) == []
    assert REMINDED.list_reminders(replace(OUT, delivered_at=None)) == []


def test_a_share_that_expired_unopened_is_made_anew_as_often_as_asked() -> None:
    unopened = replace(OUT, outcome="unopened")
    once = Schedule(reissues=1)
    assert find_next(State.EXPIRED, unopened, once, HOUR).step is Step.REISSUE
    assert find_next(State.EXPIRED, replace(unopened, reissued=1), once, HOUR).step is Step.REST
    assert find_next(State.EXPIRED, replace(OUT, outcome="unknown"), once, HOUR).step is Step.REST


def test_rows_are_looked_at_rarely_when_nothing_was_sent_for_long() -> None:
    assert choose_interval(OUT, 0, 1, 100) == MINUTE
    assert choose_interval(OUT, 10 * HOUR, 1, 100) == HOUR // 2
    assert choose_interval(OUT, 20 * DAY, 1, 100) == HOUR
    assert choose_interval(replace(OUT, touched_at=20 * DAY), 20 * DAY, 1, 100) == MINUTE


def test_all_looks_together_take_half_of_the_rate() -> None:
    assert choose_interval(OUT, 0, 1000, 100) == 20 * MINUTE
    assert choose_interval(OUT, 0, 1000, 600) == 1000 * MINUTE // 300
    assert choose_interval(OUT, 20 * DAY, 10_000, 100) == 200 * MINUTE


def test_a_failed_step_is_repeated_ever_more_rarely() -> None:
    assert [choose_retry(attempts) // MINUTE for attempts in (1, 2, 3, 6, 7, 100)] == [
        1,
        2,
        4,
        32,
        60,
        60,
    ]


_moments = st.integers(0, 40 * DAY)


@given(
    st.lists(st.integers(1, 35 * DAY), max_size=4),
    st.none() | st.integers(1, 35 * DAY),
    st.lists(_moments, max_size=30).map(sorted),
)
def test_however_seldom_rows_are_looked_at_reminders_are_few(
    after: list[int], before_expiry: int | None, looks: list[int]
) -> None:
    """Each moment is reminded of at most once, none before it is due, and after a pause one stands
    for all.
    """
    schedule = Schedule(tuple(after), before_expiry)
    moments = schedule.list_reminders(OUT)
    progress, sent = OUT, []
    for now in looks:
        due = find_next(State.WAITING, progress, schedule, HOUR)
        while due.at is not None and due.at <= now < 30 * DAY:
            if due.step is Step.REMIND:
                sent.append(now)
                progress = skip_reminders(progress, schedule, now)
            progress = replace(progress, looked_at=now)
            due = find_next(State.WAITING, progress, schedule, HOUR)
    assert len(sent) <= len(moments)
    for number, now in enumerate(sent):
        since = sent[number - 1] if number else 0
        assert any(since < moment <= now for moment in moments)
    reachable = [
        moment
        for moment in moments
        if looks and moment <= max((t for t in looks if t < 30 * DAY), default=-1)
    ]
    assert bool(sent) == bool(reachable)


@given(st.lists(st.sampled_from(list(Event)), max_size=40))
def test_random_events_lead_to_no_state_without_a_way_out(events: list[Event]) -> None:
    state, progress = State.NEW, Progress()
    for event in events:
        try:
            after = move(state, progress, event)
        except ImpossibleEventError:
            continue
        if event is Event.CREATED:
            progress = replace(progress, short_code="c")
        elif event is Event.ADOPTED:
            progress = replace(progress, short_code="c", delivered_at=1)
        elif event in (Event.DELIVERED, Event.SETTLED):
            progress = replace(progress, delivered_at=1)
        elif event is Event.WITHDRAWN:
            progress = replace(progress, wish="reissue")
        elif event is Event.RENEWED:
            progress = progress.next_generation()
        elif event is Event.ENDED:
            progress = replace(progress, wish="")
        state = after
        due = find_next(state, progress, Schedule(), HOUR)
        assert (due.at is None) == is_over(state)
        if not is_over(state) and not is_troubled(state):
            assert get_phase(progress) is state


def test_what_a_later_version_adds_is_ignored() -> None:
    members = {**replace(OUT, unclear=("a", "b")).to_members(), "of_tomorrow": 1}
    assert Progress.load(members) == replace(OUT, unclear=("a", "b"))
