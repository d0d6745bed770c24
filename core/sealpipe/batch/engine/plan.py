"""What a run would do now, row by row: nothing is sent, changed, or asked of the service.

And plans as files.

A plan binds the file's settings and each row's content, so that an approved run does what was
approved, or nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from sealpipe.batch.database.records import Row
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.states import (
    Due,
    Progress,
    Schedule,
    State,
    Step,
    find_next,
    get_phase,
    is_over,
    skip_reminders,
)
from sealpipe.errors import StateError, UsageError
from sealpipe.state.files import refuse_newer

Action = Literal["create", "wait", "remind", "collect", "reissue", "done", "blocked", "changed"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

ALLOWED_STEPS: Final[Mapping[str, tuple[Step, ...]]] = {
    "create": (Step.CREATE, Step.DELIVER),
    "remind": (Step.POLL, Step.REMIND),
    "collect": (Step.POLL,),
    "reissue": (Step.POLL, Step.REISSUE, Step.END, Step.CREATE, Step.DELIVER),
}
"""The steps that each action stands for. All other actions do nothing."""
_MAX_SIZE: Final = 64 * 1024 * 1024


class PlannedRow(NamedTuple):
    """What a run would do with a row. `digest` identifies what would be sent for it.

    `at` is when its next step is due, in microseconds; None for never. `is_changed`: the file says
    something else than what is out, which takes effect with a reissue. `is_gone`: the file no
    longer has it, so only what somebody asked for is done.
    """

    key: str
    action: Action
    state: State
    digest: str = ""
    generation: int = 1
    at: int | None = None
    detail: str = ""
    remedy: str = ""
    is_changed: bool = False
    is_gone: bool = False


class BatchPlan(NamedTuple):
    """What a run would do with a batch.

    Its rows in the order of the file, then those that the file no longer has.
    """

    name: str
    service: str
    settings: str
    """What identifies the file's settings, without its rows."""
    rows: tuple[PlannedRow, ...]

    @property
    def counts(self) -> Mapping[Action, int]:
        """The number of rows for each action."""
        return Counter(row.action for row in self.rows)

    @property
    def approvable(self) -> list[PlannedRow]:
        """The rows with which a run would do something."""
        return [row for row in self.rows if row.action in ALLOWED_STEPS]

    def to_members(self) -> dict[str, Any]:
        """Return the plan as JSON members."""
        rows = [{**row._asdict(), "state": str(row.state)} for row in self.rows]
        head = {"schema": 1, "kind": "batch-plan", "name": self.name, "service": self.service}
        return {**head, "settings": self.settings, "rows": rows}


class FileEntry(NamedTuple):
    """A row of the file: its key, and what identifies what would be sent for it."""

    key: str
    digest: str


def plan_rows(
    entries: Iterable[FileEntry], stored: Mapping[str, Row], schedule: Schedule, now: int
) -> tuple[PlannedRow, ...]:
    """Plan a run. `stored` has the rows of the database by key, with their contents."""
    planned, left = [], dict(stored)
    for key, digest in entries:
        row = left.pop(key, None)
        new = PlannedRow(key, "create", State.NEW, digest)
        planned.append(new if row is None else _plan_row(row, digest, schedule, now))
    return (*planned, *(_plan_gone(row, schedule, now) for _, row in sorted(left.items())))


def mark_over(rows: Iterable[PlannedRow], left: int, most: int) -> tuple[PlannedRow, ...]:
    """Say of the new rows that are over the machine's limit of rows an hour that they wait.

    `left` are not.
    """
    marked = []
    for row in rows:
        is_new = row.action == "create" and row.state is State.NEW
        over = is_new and left <= 0 and not row.detail
        left -= is_new
        marked.append(
            row._replace(detail=f"later: this machine allows {most} an hour") if over else row
        )
    return tuple(marked)


def _plan_row(row: Row, digest: str, schedule: Schedule, now: int) -> PlannedRow:
    state, progress = State(row.state), RowContent.load(row).progress
    due = find_next(state, progress, schedule, 0)
    # The pace of looks, and when a failed step is repeated, are in the database.
    due = due._replace(at=row.due_at)
    is_changed = bool(progress.digest) and progress.digest != digest
    passed = skip_reminders(progress, schedule, now).reminders
    action = _choose_action(
        state, progress, schedule, due, now, reminds=passed > progress.reminders
    )
    if action == "wait" and is_changed:
        action = "changed"
    detail = progress.problem or (progress.outcome if is_over(state) else "")
    return PlannedRow(
        row.key or "",
        action,
        state,
        digest,
        row.generation,
        row.due_at,
        detail,
        progress.remedy,
        is_changed,
    )


def _choose_action(
    state: State, progress: Progress, schedule: Schedule, due: Due, now: int, *, reminds: bool
) -> Action:
    if state is State.BLOCKED:
        return "blocked"
    if due.step is Step.REISSUE:
        return "reissue"
    if is_over(state):
        return "done"
    phase = get_phase(progress)
    if phase is State.ENDING:
        return "reissue" if progress.wish == "reissue" else "done"
    if phase is not State.WAITING:
        return "create"
    # A run repeats at once what failed.
    is_due = due.at is not None and (due.at <= now or state is State.FAILED)
    is_over_now = progress.expires_at is not None and progress.expires_at <= now
    if is_due and is_over_now and progress.reissued < schedule.reissues:
        return "reissue"  # unless the look that comes first finds that it was opened
    if is_due and reminds and not is_over_now:
        return "remind"
    return (
        "collect"
        if is_due and (progress.submissions > progress.collected or is_over_now)
        else "wait"
    )


def _plan_gone(row: Row, schedule: Schedule, now: int) -> PlannedRow:
    state, progress = State(row.state), RowContent.load(row).progress
    due = find_next(state, progress, schedule, 0, is_gone=True)
    if due.step is Step.REST:
        action: Action = "done" if is_over(state) else "wait"
        detail = "the file no longer has this row: it is left alone"
    else:
        action = _choose_action(
            state, progress, schedule, due._replace(at=row.due_at), now, reminds=False
        )
        detail = (
            "the file no longer has this row, but somebody asked to "
            f"{progress.wish or 'reissue'} it"
        )
    return PlannedRow(
        row.key or "", action, state, generation=row.generation, detail=detail, is_gone=True
    )


def dump_plan(plan: BatchPlan) -> bytes:
    """Return the content of a plan's file."""
    return (json.dumps(plan.to_members(), ensure_ascii=False, indent=1) + "\n").encode()


def read_plan(path: Path) -> BatchPlan:
    """Read a plan from its file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SIZE)
        members = json.loads(content)
        refuse_newer(members, f"the plan {path}", UsageError)
        if (members["schema"], members["kind"]) != (1, "batch-plan"):
            raise ValueError
        rows = tuple(_read_row(each) for each in members["rows"])
        return BatchPlan(
            str(members["name"]), str(members["service"]), str(members["settings"]), rows
        )
    except OSError as error:
        raise UsageError(
            f"the plan {path} cannot be read: {error.strerror}", remedy="check the path"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UsageError(
        f"{path} is not a plan", remedy="make one with `sealpipe batch plan FILE --out PLAN`"
    )


def _read_row(members: Mapping[str, Any]) -> PlannedRow:
    row = PlannedRow(**{**members, "state": State(members["state"])})
    if (
        row.action not in ACTIONS
        or not isinstance(row.key, str)
        or not isinstance(row.generation, int)
    ):
        raise ValueError
    return row


def check_approved(approved: BatchPlan, current: BatchPlan) -> Sequence[PlannedRow]:
    """Return the rows with which an approved run does something.

    Raises UsageError if the plan is of another batch, StateError if something of it is no longer
    what a run would do.
    """
    if (approved.name, approved.service) != (current.name, current.service):
        raise UsageError(
            (
                f"the plan is of batch {approved.name} at {approved.service}, not of "
                f"{current.name} at {current.service}"
            ),
            remedy="name the file that the plan was made of",
        )
    if approved.settings != current.settings:
        raise _make_change_error("the file's settings have changed since")
    now_by_key = {row.key: row for row in current.rows}
    for row in approved.approvable:
        found = now_by_key.get(row.key)
        if found is None:
            raise _make_change_error(f"row {row.key} is not there any more")
        if (found.action, found.generation, found.digest) != (
            row.action,
            row.generation,
            row.digest,
        ):
            was = (
                "its content has changed"
                if found.action == row.action
                else f"it would be: {found.action}"
            )
            raise _make_change_error(f"row {row.key} was to be: {row.action}, and now {was}")
    return approved.approvable


def _make_change_error(problem: str) -> StateError:
    return StateError(
        f"the plan no longer holds: {problem}; nothing was done",
        remedy="make a new plan with `sealpipe batch plan FILE --out PLAN`, and have it approved",
    )
