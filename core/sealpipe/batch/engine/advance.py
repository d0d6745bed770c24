"""One short job for one row: read it, do what is due, record it, and say when it is due again.

It can be killed anywhere and repeated. Whoever loses the row to another worker stops, and writes
nothing. An error stays in its row with its remedy, and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.records import Batch, ConflictError, Row
from sealpipe.batch.database.sealing import Members
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.breaker import LONGEST_RETRY, POSTPONEMENT, Breaker, choose_retry
from sealpipe.batch.engine.row_limit import RowLimit
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.steps.content import RowContent, describe_error
from sealpipe.batch.steps.listing import ServiceList
from sealpipe.batch.steps.request_steps import REQUEST_STEPS
from sealpipe.batch.steps.row_work import (
    BlockedError,
    RefusedError,
    RowWork,
    StepResult,
    Steps,
    make_schedule,
    mark_unclear,
    open_row_session,
)
from sealpipe.batch.steps.share_steps import SHARE_STEPS
from sealpipe.batch.steps.states import (
    MINUTE,
    Due,
    Event,
    Progress,
    State,
    Step,
    choose_interval,
    find_next,
    get_phase,
    is_over,
    is_troubled,
    move,
)
from sealpipe.errors import (
    IdempotencyConflictError,
    PublicKeyMismatchError,
    RateLimitError,
    UnknownOutcomeError,
    WrongKeyError,
)
from sealpipe.session import Session

_PACE_AGE: Final = MINUTE // 12  # how long the rate that was read sets the pace of looks
DEFAULT_RATE: Final = 100
"""Calls per minute of the smallest plan (specification: Limits)."""
MAX_STEPS: Final = 12
"""Steps in a row for one row: there are never that many."""
_BLOCKING: Final = (
    BlockedError,
    IdempotencyConflictError,
    PublicKeyMismatchError,
    UnknownOutcomeError,
    WrongKeyError,
)
"""Errors that a repetition does not mend: a person decides."""
_LOOKS: Final = (Step.POLL, Step.REMIND)
_STEPS: Final[Mapping[str, Steps]] = {"request": REQUEST_STEPS, "share": SHARE_STEPS}


_WATCHED: Final = (State.WAITING, State.FAILED, State.BLOCKED)


def can_look(row: Row) -> bool:
    """Return whether a row waits for its link to be used, and the file still has it."""
    content = RowContent.load(row)
    return (
        not content.is_gone
        and not is_over(State(row.state))
        and get_phase(content.progress) is State.WAITING
    )


class Change(NamedTuple):
    """What happened to a row, in words of its history.

    `created`, `delivered`, `reminded`, `collected`, `failed` ...
    """

    key: str
    what: str
    problem: str = ""
    remedy: str = ""


@dataclass(slots=True)
class Advanced:
    """What a job came to.

    `step` is the last one; `error` is why it failed; `is_lost`: another worker has the row.
    """

    row: Row
    changes: list[Change] = field(default_factory=list)
    step: Step = Step.REST
    error: Exception | None = None
    is_lost: bool = False


class Engine:
    """Advances the rows of one batch. Threads share it."""

    def __init__(
        self, session: Session, store: BatchStore, batch: Batch, definition: BatchDefinition
    ) -> None:
        self.session = session
        self.store = store
        self.batch = batch
        self.definition = definition
        self.schedule = make_schedule(definition)
        self.waiting = 1
        """How many rows are looked at, which sets their pace."""
        self.breaker = Breaker()
        self.row_limit = RowLimit(store, session.batch_rows_per_hour)
        self._pace_read_at, self._per_minute = 0, float(DEFAULT_RATE)
        self._steps = _STEPS[definition.kind]
        self._listing = ServiceList(session, store)

    def count_waiting(self) -> None:
        """Count the rows that are looked at."""
        counts = self.store.count_states(self.batch)
        self.waiting = max(1, sum(counts.get(state, 0) for state in _WATCHED))

    def look(self, row: Row) -> Advanced:
        """Look now whether the link of a row was used, whatever its schedule says; remind nobody.

        The caller has taken the row. It stays as it is if there is nothing to look at, or if looks
        fail for other rows, too. Then the step is `REST`.
        """
        if not can_look(row) or self.breaker.is_open(Step.POLL):
            return Advanced(row)
        advanced = self.carry_out(row, self._steps[Step.POLL])
        advanced.step = Step.POLL
        if advanced.error is not None:
            self.breaker.note_failure(Step.POLL, advanced.error)
        elif not advanced.is_lost:
            self.breaker.note_success(Step.POLL)
        return advanced

    def advance(self, row: Row, *, force: bool = False, steps: Sequence[Step] = ()) -> Advanced:
        """Do what is due for a row that the caller has taken, and give it back.

        With `force`, its next step is due. If there are `steps`, only these are done. Of a row that
        is gone from the file, only what somebody asked for is due. Raises DatabaseUnavailableError.
        """
        work, advanced = self._begin(row), Advanced(row)
        try:
            with self.store.merge_writes(row):
                for _ in range(MAX_STEPS):
                    if not self._take_step(work, advanced, steps, force=force):
                        break
                    force = False
        except ConflictError:
            advanced.is_lost = True
        advanced.row = work.row
        return advanced

    def carry_out(self, row: Row, step: Callable[[RowWork], StepResult]) -> Advanced:
        """Do one step that somebody asked for, with a row that the caller has taken.

        RefusedError if it makes no sense now: then the row is still held.
        """
        work, advanced = self._begin(row), Advanced(row)
        try:
            try:
                result = step(work)
            except (ConflictError, DatabaseUnavailableError, RefusedError):
                raise
            except Exception as error:  # noqa: BLE001 - it is told, as that of any other step
                self._record_failure(work, advanced, error)
            else:
                self._record(work, advanced, result, keep=False)
        except ConflictError:
            advanced.is_lost = True
        advanced.row = work.row
        return advanced

    def record_wish(self, row: Row, progress: Progress, state: State) -> Row:
        """Record what somebody asked for, before it is carried out. The row stays held."""
        work = self._begin(row)
        work.progress = progress
        wish = StepResult(Event.WITHDRAWN, progress, [{"what": "asked", "for": progress.wish}])
        self._save(work, state, self.store.now(), wish, keep=True)
        return work.row

    def renew(self, row: Row) -> Advanced:
        """Begin the next generation of a row of which nothing is out any more, and carry it out."""
        work = self._begin(row)
        progress = work.progress.next_generation(is_asked_for=True)
        result = StepResult(
            Event.RENEWED, progress, [{"what": "reissued"}], generation=row.generation + 1
        )
        work.progress = progress
        self._save(work, State.NEW, self.store.now(), result, keep=True)
        advanced = self.advance(work.row)
        advanced.changes.insert(0, Change(work.key, "reissued"))
        return advanced

    def _begin(self, row: Row) -> RowWork:
        content = RowContent.load(row)
        return RowWork(
            open_row_session(self.session, self.batch, row),
            self.store,
            self.batch,
            self.definition,
            self.schedule,
            self._listing,
            row,
            {**(content.newer or {}), **content.values},  # [collect] may name a column that is new
            content.progress,
            content.is_gone,
            content.options,
        )

    def _find_due(self, work: RowWork, state: State, progress: Progress) -> Due:
        return find_next(
            state, progress, self.schedule, self._choose_interval(progress), is_gone=work.is_gone
        )

    def _take_step(
        self, work: RowWork, advanced: Advanced, steps: Sequence[Step], *, force: bool
    ) -> bool:
        """Do the next step if it is due. Returns whether the row is still held for another one."""
        due, now = self._find_due(work, State(work.row.state), work.progress), self.store.now()
        if due.at is not None and self.breaker.is_open(due.step):
            due = due._replace(at=max(due.at, now + POSTPONEMENT))
            force = False
        if due.at is None or (due.at > now and not force) or (steps and due.step not in steps):
            self._save(work, State(work.row.state), due.at)
            return False
        later = self.row_limit.postpone(work.row) if due.step is Step.CREATE else None
        if later is not None:
            self._save(work, State(work.row.state), later)
            return False
        advanced.step = due.step
        if due.step is Step.CREATE:
            self._take_newer(work)
        try:
            if due.step in _LOOKS:
                self.store.rate.acquire()  # looks take half of the rate: each counts twice
            result = self._steps[due.step](work)
            self.breaker.note_success(due.step)
        except (ConflictError, DatabaseUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it stops no other row
            self.breaker.note_failure(due.step, error)
            self.row_limit.give_back(work.row)
            self._record_failure(work, advanced, error)
            return False
        return self._record(work, advanced, result)

    def _take_newer(self, work: RowWork) -> None:
        """Create what the file says now, unless the create of what it said before has begun."""
        newer = RowContent.load(work.row).newer
        if (
            newer is not None
            and self.store.effects.find(work.row, work.name_effect("create")) is None
        ):
            work.values, work.takes_newer = newer, True

    def _record(
        self, work: RowWork, advanced: Advanced, result: StepResult, *, keep: bool = True
    ) -> bool:
        """Record what a step came to.

        Returns whether the next one is due already: then, with `keep`, it stays held.
        """
        before, progress = State(work.row.state), result.progress
        if not progress.unclear or result.event is Event.USED:
            progress = replace(progress, problem="", remedy="", exit_code=0, unclear=())
        elif before is State.FAILED and progress.problem == work.progress.problem:
            # It was blocked before it failed, and is again.
            progress = mark_unclear(work, replace(progress, unclear=()), progress.unclear)
        progress = replace(progress, attempts=0)
        # A troubled row's phase is that before the step; one that recovers goes on where it is now.
        state = move(
            before, progress if result.event is Event.RECOVERED else work.progress, result.event
        )
        if progress.unclear and state is State.WAITING:
            state = State.BLOCKED
        if not result.history and is_troubled(before) and not is_troubled(state):
            # Else the history would end with what went wrong.
            result = result._replace(history=[{"what": str(Event.RECOVERED)}])
        due = self._find_due(work, state, progress)
        at = None if due.at is None else max(due.at, result.again_at or 0)
        advanced.changes += [
            Change(work.key, str(line["what"]), progress.problem, progress.remedy)
            for line in result.history
        ]
        is_due = keep and at is not None and at <= self.store.now()
        work.progress = progress
        self._save(work, state, at, result, keep=is_due)
        return is_due

    def _record_failure(self, work: RowWork, advanced: Advanced, error: Exception) -> None:
        advanced.error = error
        event = Event.BLOCKED if isinstance(error, _BLOCKING) else Event.FAILED
        before, progress = State(work.row.state), work.progress
        problem, remedy, exit_code = describe_error(error)
        progress = replace(
            progress,
            problem=problem,
            remedy=remedy,
            exit_code=exit_code,
            attempts=progress.attempts + 1,
        )
        wait = choose_retry(progress.attempts)
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            wait = min(LONGEST_RETRY, round(error.retry_after * 1_000_000))
        history: list[Members] = []
        if work.progress.problem != problem:
            history = [{"what": str(event), "problem": problem, "remedy": remedy}]
            advanced.changes.append(Change(work.key, str(event), problem, remedy))
        work.progress = progress
        at = None if isinstance(error, BlockedError) else self.store.now() + wait
        self._save(work, move(before, progress, event), at, StepResult(event, progress, history))

    def _save(
        self,
        work: RowWork,
        state: State,
        due_at: int | None,
        result: StepResult | None = None,
        *,
        keep: bool = False,
    ) -> None:
        content = RowContent.load(work.row)
        if work.takes_newer:
            content, work.takes_newer = content.renew(), False
        generation = None if result is None else result.generation
        if result is not None and result.event is Event.RENEWED:
            content = content.renew()
            work.values, work.options, work.created = content.values, content.options, None
        content = content._replace(progress=work.progress, options=work.options)
        work.row = self.store.save(
            work.row,
            state=state,
            due_at=due_at,
            content=content.to_members(),
            generation=generation,
            events=() if result is None else result.history,
            keep=keep,
        )

    def _choose_interval(self, progress: Progress) -> int:
        now = self.store.now()
        if not self._pace_read_at <= now <= self._pace_read_at + _PACE_AGE:
            self._pace_read_at = now
            self._per_minute = self.store.rate.read().calls_per_minute or DEFAULT_RATE
        return choose_interval(progress, now, self.waiting, self._per_minute)
