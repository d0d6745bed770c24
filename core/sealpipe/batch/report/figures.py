"""What `status` and `report` tell of a batch.

Its numbers, what was used when, and each row with what comes next. Pure.

Nothing of it is secret, and nothing is a link: a request's short code is left out, because its link
is made of it. Times are microseconds since 1970, by the database's clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, Literal, NamedTuple

from sealpipe.batch.steps.states import (
    HOUR,
    MINUTE,
    Progress,
    Schedule,
    State,
    Step,
    find_next,
    is_over,
    is_troubled,
)

DAY: Final = 24 * HOUR
ATTENTION: Final = (
    State.BLOCKED,
    State.FAILED,
    State.ENDING,
    State.NEW,
    State.SENDING,
    State.WAITING,
    State.EXPIRED,
    State.CANCELLED,
    State.DONE,
)
"""The order of states and of rows: what somebody should look at comes first."""
_SHOWN_MEMBERS: Final = (
    "what",
    "by",
    "for",
    "because",
    "submissions",
    "late",
    "unclear",
    "problem",
    "remedy",
)
"""Members of a history's line that a report shows."""
_CONCEALED: Final = "[withheld]"
_MOST_STEPS: Final = 60
_STEPS: Final = (
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    28 * DAY,
)


class HistoryLine(NamedTuple):
    """What happened to a row, and when."""

    at: int
    content: Mapping[str, Any]


class RowFacts(NamedTuple):
    """A row as its database has it. `is_gone`: the file no longer has it."""

    key: str
    state: State
    since: int
    due_at: int | None
    progress: Progress
    generation: int = 1
    is_gone: bool = False
    history: Sequence[tuple[int, Mapping[str, Any]]] = ()


class ReportedRow(NamedTuple):
    """A row as it is told.

    `next_step` is empty if nothing comes by itself, `exit_code` 0 if nothing went wrong.
    """

    key: str
    state: State
    outcome: str
    since: int
    next_step: str
    next_at: int | None
    delivered_at: int | None
    used_at: int | None
    expires_at: int | None
    submissions: int
    stored: int
    reminders: int
    generation: int
    problem: str
    remedy: str
    exit_code: int
    history: tuple[HistoryLine, ...]


class Timeline(NamedTuple):
    """How many rows had their link delivered, and used, by `begin`, `begin + step` and so on.

    Of a row that was reissued, its last link counts.
    """

    begin: int
    step: int
    delivered: tuple[int, ...]
    used: tuple[int, ...]

    @property
    def end(self) -> int:
        """The last moment."""
        return self.begin + self.step * (len(self.delivered) - 1)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch at a moment.

    `rows` are in the order of `ATTENTION`, then by key; no `timeline` before a delivery.
    """

    name: str
    kind: Literal["request", "share"]
    service: str
    made_at: int
    rows: tuple[ReportedRow, ...]
    timeline: Timeline | None

    @property
    def counts(self) -> dict[State, int]:
        """The number of rows in each state that has any."""
        found = Counter(row.state for row in self.rows)
        return {state: found[state] for state in ATTENTION if found[state]}

    @property
    def over(self) -> int:
        """How many rows have ended, in whatever way."""
        return sum(is_over(row.state) for row in self.rows)

    @property
    def troubled(self) -> int:
        """How many rows failed or are blocked."""
        return sum(is_troubled(row.state) for row in self.rows)

    @property
    def used(self) -> int:
        """How many rows' links are known to have been used."""
        return sum(row.used_at is not None for row in self.rows)

    def add_up(self, name: Literal["submissions", "stored", "reminders"]) -> int:
        """Return a number of all rows together."""
        return sum(getattr(row, name) for row in self.rows)


def make_report(
    name: str,
    kind: Literal["request", "share"],
    service: str,
    rows: Iterable[RowFacts],
    schedule: Schedule,
    now: int,
    redact: Callable[[str], str] = str,
) -> BatchReport:
    """Report on the rows of a batch.

    `redact` hides what looks like a secret in texts that come from outside.
    """
    reported = sorted(
        (_report_row(name, row, schedule, redact) for row in rows),
        key=lambda row: (ATTENTION.index(row.state), row.key),
    )
    delivered = [row.delivered_at for row in reported if row.delivered_at is not None]
    used = [row.used_at for row in reported if row.used_at is not None]
    return BatchReport(
        name, kind, service, now, tuple(reported), make_timeline(delivered, used, now)
    )


def _report_row(
    batch: str, row: RowFacts, schedule: Schedule, redact: Callable[[str], str]
) -> ReportedRow:
    progress, key = row.progress, redact(row.key)
    step = _find_step(row, schedule)
    conceal = _make_concealer(row, redact)
    problem, remedy = conceal(progress.problem), conceal(progress.remedy)
    if row.is_gone and step is Step.REST and not problem and not is_over(row.state):
        problem = "the file no longer has this row: it is left alone"
        remedy = f"put it back, or run `sealpipe batch cancel {quote(batch)} -- {quote(key)}`"
    history = tuple(HistoryLine(at, _tell(content, conceal)) for at, content in row.history)
    return ReportedRow(
        key,
        row.state,
        progress.outcome,
        row.since,
        "" if step is Step.REST else str(step),
        None if step is Step.REST else row.due_at,
        progress.delivered_at,
        progress.used_at,
        progress.expires_at,
        progress.submissions,
        progress.collected,
        progress.reminded,
        row.generation,
        problem,
        remedy,
        progress.exit_code,
        history,
    )


def _make_concealer(row: RowFacts, redact: Callable[[str], str]) -> Callable[[str], str]:
    """Return what also hides the short codes of a row, of which errors often tell.

    Its links are made of them.
    """
    found = (row.progress.short_code, *(content.get("short_code") for _, content in row.history))
    codes = sorted(
        {code for code in found if isinstance(code, str) and code}, key=len, reverse=True
    )

    def conceal(text: str) -> str:
        for code in codes:
            text = text.replace(code, _CONCEALED)
        return redact(text)

    return conceal


def _find_step(row: RowFacts, schedule: Schedule) -> Step:
    """Return what is done when the row is due."""
    if row.due_at is None:
        return Step.REST
    interval = row.due_at - (row.progress.looked_at or row.progress.delivered_at or 0)
    return find_next(row.state, row.progress, schedule, max(0, interval), is_gone=row.is_gone).step


def _tell(content: Mapping[str, Any], redact: Callable[[str], str]) -> dict[str, Any]:
    shown = {name: content[name] for name in _SHOWN_MEMBERS if content.get(name)}
    return {
        name: redact(value) if isinstance(value, str) else value for name, value in shown.items()
    }


def make_timeline(delivered: Sequence[int], used: Sequence[int], now: int) -> Timeline | None:
    """Count delivered and used rows by at most some sixty moments up to now, or None."""
    moments = [*delivered, *used]
    if not moments:
        return None
    first, last = min(moments), max(*moments, now)
    step = next((each for each in _STEPS if (last - first) // each < _MOST_STEPS), _STEPS[-1])
    begin = first - first % step
    times = range(begin, last + step, step)
    return Timeline(begin, step, _count_by(delivered, times), _count_by(used, times))


def _count_by(moments: Sequence[int], times: range) -> tuple[int, ...]:
    ordered = sorted(moments)
    return tuple(bisect_right(ordered, time) for time in times)
