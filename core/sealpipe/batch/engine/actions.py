"""What somebody asks for by hand: collect, remind, reissue, cancel, show a link.

A reissue or cancel is recorded before anything is sent.

So a kill between the two loses nothing: the next run carries it out.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import Final, Literal

from sealpipe.batch.database.records import Batch, Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import Advanced, Change, Engine, can_look
from sealpipe.batch.engine.high_water import check_high_water, note_high_water
from sealpipe.batch.engine.notify import check_allowed
from sealpipe.batch.engine.outcome import PARTICIPLES, Outcome, Verb
from sealpipe.batch.engine.wishes import CarryOut, ask, serving_wishes
from sealpipe.batch.file.mistakes import suggest_name
from sealpipe.batch.steps import request_steps, share_steps
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.row_work import (
    RefusedError,
    RowWork,
    StepResult,
    mark_unclear,
    name_command,
    to_datetime,
)
from sealpipe.batch.steps.states import (
    Event,
    State,
    Step,
    get_phase,
    is_over,
    is_troubled,
    move,
)
from sealpipe.errors import NotFoundError, UsageError, quote_input
from sealpipe.parsing import format_time
from sealpipe.wire import link

HELD_PATIENCE: Final = 10.0
"""Seconds that a row is waited for that another worker holds: as long as a step takes."""
_HELD_WAIT: Final = 0.1
"""Seconds between two attempts to take it."""
_TURN: Final = 1.0
"""Seconds after which a run that waits may begin, which then does what is left."""


def act(
    engine: Engine,
    verb: Verb,
    keys: Sequence[str],
    on_outcome: Callable[[Outcome], object] = lambda _: None,
) -> list[Outcome]:
    """Collect, remind, reissue or cancel rows now; without keys, all rows that it applies to.

    A row's error stops no other; `on_outcome` is called for each row as it is done.

    Raises UsageError for a key that the batch does not have, PolicyError where policies allow no
    batch, StateError if the database was restored: then nothing is done.
    """
    check_high_water(engine.store, engine.batch)
    if verb == "collect" and engine.definition.kind == "share":
        raise UsageError(
            f"the rows of {engine.batch.name} are shares: nobody submits anything",
            remedy="`sealpipe batch run --now FILE` looks whether they were opened",
        )
    if verb != "cancel":  # which sends nothing, and each row's end is asked about on its own
        check_allowed(engine.session, engine.batch.name)
    engine.count_waiting()
    outcomes = []
    for outcome in _act_on_rows(engine, verb, dict(_select(engine, verb, keys))):
        if verb == "collect" and not keys and outcome.state == State.DONE:
            outcome = outcome._replace(problem="", remedy="")  # a run was faster
        outcomes.append(outcome)
        on_outcome(outcome)
    note_high_water(engine.store, engine.batch)
    return outcomes


def _act_on_rows(engine: Engine, verb: Verb, rows: Mapping[str, str]) -> Iterator[Outcome]:
    """Act on rows, ids by key: in this process, unless another one runs an embedded database."""
    carry_out = partial(_act_on_row, engine)

    left = dict(rows)
    while left:
        with engine.store.join_runner() as is_free:
            ends_at = time.monotonic() + _TURN
            while is_free and left:
                key = next(iter(left))
                yield carry_out(verb, key, left.pop(key))
                if time.monotonic() >= ends_at:
                    break
        if not is_free:
            yield from ask(engine.store, engine.batch, verb, left, carry_out)
            return
        if left and engine.store.has_one_runner:
            time.sleep(_HELD_WAIT)  # who waits for the runner's lock gets it


def serving_hands(
    store: BatchStore,
    make_engine: Callable[[Batch], Engine],
    on_change: Callable[[Batch, Change], object] = lambda _, __: None,
) -> AbstractContextManager[None]:
    """Carry out during the block what other processes ask for by hand, in any batch.

    The caller holds the runner's lock.
    """

    def open_batch(batch: Batch) -> CarryOut:
        engine = make_engine(batch)
        engine.count_waiting()

        def carry_out(verb: Verb, key: str, row_id: str) -> Outcome:
            outcome = _act_on_row(engine, verb, key, row_id)
            for change in outcome.changes:
                on_change(batch, change)
            return outcome

        return carry_out

    return serving_wishes(store, open_batch)


def _select(engine: Engine, verb: Verb, keys: Sequence[str]) -> list[tuple[str, str]]:
    """Return keys and ids of the rows; those that nobody named in order. Raises UsageError."""
    if not keys:
        rows = engine.store.list_rows(engine.batch, contents=True)
        chosen = [row for row in rows if _applies(verb, row)]
        return sorted((row.key or "", row.id) for row in chosen)
    return [(key, find_row(engine, key).id) for key in dict.fromkeys(keys)]


def find_row(engine: Engine, key: str) -> Row:
    """Return the row of a key, which is in NFC as those of the file.

    Raises UsageError, which suggests the nearest.
    """
    row = engine.store.find_row(engine.batch, unicodedata.normalize("NFC", key))
    if row is not None:
        return row
    known = sorted(each.key or "" for each in engine.store.list_rows(engine.batch, contents=True))
    problem = (
        f"batch {engine.batch.name} has no row {quote_input(key)}; nothing was done"
        if key
        else "give the KEY of a row"
    )
    raise UsageError(
        problem, remedy=suggest_name(key, known, f"the rows of {engine.batch.name} are")
    )


def _applies(verb: Verb, row: Row) -> bool:
    state = State(row.state)
    if verb == "collect":
        return can_look(row)
    if verb == "remind":
        is_out = get_phase(RowContent.load(row).progress) is State.WAITING
        return is_out and not is_over(state)
    if verb == "reissue":
        return state is State.EXPIRED
    return not is_over(state)


def _take(engine: Engine, row_id: str) -> Row | None:
    """Take a row, as soon as another worker has ended its step; None if that takes too long."""
    ends_at = time.monotonic() + HELD_PATIENCE
    while True:
        row = engine.store.take(engine.batch, row_id)
        if row is not None or time.monotonic() >= ends_at:
            return row
        engine.store.reconcile([engine.batch], is_thorough=False)
        time.sleep(_HELD_WAIT)


def _act_on_row(engine: Engine, verb: Verb, key: str, row_id: str) -> Outcome:
    row = _take(engine, row_id)
    if row is None:
        return _make_held_outcome(engine, key, row_id)
    try:
        advanced = _WORK[verb](engine, row)
    except UsageError as error:
        return Outcome(key, (), error.message, error.remedy, row.state)
    finally:
        engine.store.give_back(row)
    state = advanced.row.state
    if advanced.is_lost:
        return Outcome(
            key,
            advanced.changes,
            "another worker took this row meanwhile",
            "run the command again",
            state,
        )
    return Outcome(
        key, advanced.changes, *_find_problem(engine, verb, advanced.row, advanced.step), state
    )


def _make_held_outcome(engine: Engine, key: str, row_id: str) -> Outcome:
    row = engine.store.read_row(engine.batch, row_id)
    if row is None:
        return Outcome(key, (), "it was purged meanwhile")
    problem = f"it is {row.state}, and another worker has it: nothing was done"
    return Outcome(key, (), problem, "run the command again", row.state)


def _find_problem(engine: Engine, verb: Verb, row: Row, step: Step) -> tuple[str, str]:
    """Return why a row is not where the verb brings it, and what to do; nothing if it is there."""
    state, progress = State(row.state), RowContent.load(row).progress
    if is_troubled(state):
        return progress.problem, progress.remedy
    reason = engine.breaker.reason
    if verb == "collect" and step is Step.REST and reason is not None:
        return f"not looked at: {reason.message}", reason.remedy
    if verb == "collect" and state is State.EXPIRED:
        remedy = f"`{name_command(engine.batch, row, 'reissue')}` asks again, with a new link"
        return "nobody has submitted before it ended", remedy
    is_out = state is State.DONE or get_phase(progress) is State.WAITING
    if {"collect": True, "remind": True, "reissue": is_out, "cancel": state is State.CANCELLED}[
        verb
    ]:
        return "", ""
    if reason is not None:
        why = f" ({reason.message})"
    else:  # a DELETE that comes late would destroy what was submitted
        why = " (its request ends by itself within two minutes)" if state is State.ENDING else ""
    at = "with the next run" if row.due_at is None else f"at {_format(row.due_at)}"
    problem = f"not {PARTICIPLES[verb]} yet: it is {state}, and goes on {at}{why}"
    return problem, "`sealpipe batch run FILE` or a worker does it then"


def _format(moment: int) -> str:
    return format_time(to_datetime(moment))


def _collect(engine: Engine, row: Row) -> Advanced:
    """Look for a submission, and store it."""
    state, content = State(row.state), RowContent.load(row)
    again = f"`{name_command(engine.batch, row, 'reissue')}` asks again, with a new link"
    if is_over(state):
        shown = f"`sealpipe batch status {engine.batch.name}` shows each row"
        raise UsageError(f"it is {state} already", remedy=shown if state is State.DONE else again)
    if get_phase(content.progress) is not State.WAITING:
        raise UsageError(
            f"it is {state}: its link is not out",
            remedy="`sealpipe batch run FILE` or a worker goes on with it",
        )
    if content.is_gone:
        raise UsageError(
            "the file no longer has this row: nothing is collected for it",
            remedy="put it back into the file, and run it",
        )
    return engine.look(row)


def _remind(engine: Engine, row: Row) -> Advanced:
    if not _applies("remind", row):
        raise UsageError(
            f"it is {row.state}: there is nobody to remind",
            remedy="`sealpipe batch status` shows each row",
        )
    return engine.carry_out(row, _send_by_hand)


def _send_by_hand(work: RowWork) -> StepResult:
    """Send the link once more, whatever may have arrived before."""
    kind = request_steps if work.definition.kind == "request" else share_steps
    if kind.make_job(work).delivery is None:
        raise RefusedError(
            "it has no recipient: it was created without send",
            remedy=f"`{work.name_command('link')}` prints its link, to pass it on",
        )
    try:
        has_ended = kind.has_ended(work)
    except NotFoundError:
        has_ended = True
    if has_ended:
        raise RefusedError(
            "its link no longer works",
            remedy=f"`{work.name_command('reissue')}` creates another, and sends it",
        )
    number = work.progress.manual + 1
    unclear = kind.send_reminder(work, f"manual-{number}")
    progress = replace(
        work.progress,
        touched_at=work.now(),
        reminded=work.progress.reminded + 1,
        manual=number,
        unclear=(),
    )
    history = [{"what": "reminded", "by": "hand", "unclear": list(unclear)}]
    return StepResult(Event.RECOVERED, mark_unclear(work, progress, unclear), history)


def _reissue(engine: Engine, row: Row) -> Advanced:
    return _withdraw(engine, row, "reissue")


def _cancel(engine: Engine, row: Row) -> Advanced:
    if is_over(State(row.state)):
        remedy = f"`{name_command(engine.batch, row, 'reissue')}` begins it anew"
        code = RowContent.load(row).progress.short_code
        if row.state == State.DONE and code:  # its link may still work
            remedy = (
                f"`sealpipe {engine.definition.kind}s expire {quote(code)}` ends its link; {remedy}"
            )
        raise UsageError(f"it is {row.state} already", remedy=remedy)
    return _withdraw(engine, row, "cancel")


def _withdraw(engine: Engine, row: Row, wish: Literal["reissue", "cancel"]) -> Advanced:
    """Record the wish, then carry it out: what is out is ended first."""
    progress = replace(
        RowContent.load(row).progress, wish=wish, problem="", remedy="", exit_code=0, unclear=()
    )
    state = State(row.state)
    if state in (State.EXPIRED, State.CANCELLED):
        return engine.renew(row)
    return engine.advance(
        engine.record_wish(row, progress, move(state, progress, Event.WITHDRAWN)), force=True
    )


_WORK: Final[Mapping[Verb, Callable[[Engine, Row], Advanced]]] = {
    "collect": _collect,
    "remind": _remind,
    "reissue": _reissue,
    "cancel": _cancel,
}


def show_link(engine: Engine, key: str) -> str:
    """Return the collect link of a row, which is no secret. Raises UsageError."""
    row = find_row(engine, key)
    content = RowContent.load(row)
    if engine.definition.kind == "share":
        raise UsageError(
            "the link of a share is a secret, and is only delivered",
            remedy="`sealpipe batch reissue` sends a new one",
        )
    short_code = content.progress.short_code
    if not short_code:
        command = (
            name_command(engine.batch, row, "reissue")
            if content.is_gone
            else "sealpipe batch run FILE"
        )
        raise UsageError(
            f"row {key} has no link yet: it is {row.state}", remedy=f"`{command}` creates it"
        )
    return link.collect_link(engine.session.link_base_url, short_code)
