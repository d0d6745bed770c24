"""Brings a batch's file and its database together.

New rows are added, others are told apart, and nothing is sent.

The database holds the whole definition, so that a worker needs no file. What is out stays as it is:
another content of a row, or a row that is gone from the file, is noted beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sealpipe.api.responses import escape_text
from sealpipe.batch.database.records import Batch, NewRow, Row
from sealpipe.batch.database.sealing import Members, hide_digest
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.plan import BatchPlan, FileEntry, mark_over, plan_rows
from sealpipe.batch.engine.row_limit import RowLimit
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.reading import load_definition
from sealpipe.batch.file.render import render_row
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.row_work import make_schedule
from sealpipe.batch.steps.states import (
    Progress,
    Schedule,
    State,
    Step,
    find_next,
    get_phase,
    is_over,
)
from sealpipe.errors import UsageError
from sealpipe.wire import jsontext

_DEFINITION: Final = "definition"
_ROWS: Final = "rows"
_NAMED: Final = 5  # rows that a warning names
_GONE: Final = (
    "not in the file any more: left alone, until `batch cancel`; another file may have the "
    "same name"
)
_CHANGED: Final = "not as the file says now: what is out stays as it is until `batch reissue`"


class SyncResult(NamedTuple):
    """The batch, and its unfinished rows that the file has changed or no longer has.

    These are empty if the file is that of the last run.
    """

    batch: Batch
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def list_warnings(self) -> tuple[str, ...]:
        """Return what a run says of them.

        The file may be another one of the same name, or half of one.
        """
        found = ((self.gone, _GONE), (self.changed, _CHANGED))
        return tuple(f"{_name_rows(keys)} {what}" for keys, what in found if keys)


def restore_definition(batch: Batch) -> BatchDefinition:
    """Return a batch's definition as its database holds it, without rows. Raises UsageError."""
    return load_definition(batch.content[_DEFINITION])


def sync(store: BatchStore, definition: BatchDefinition) -> SyncResult:
    """Store the file. Raises UsageError if another kind of batch has its name; StateError."""
    dumped, rows_digest = (
        definition.dump(),
        digest([[row.key, dict(row.values)] for row in definition.rows]),
    )
    batch = store.add_batch(definition.name, {_DEFINITION: dumped, _ROWS: ""})
    stored = restore_definition(batch)
    if stored.kind != definition.kind:
        raise UsageError(
            f"there is a batch {definition.name} of another kind: its rows are {stored.kind}s",
            remedy=(
                "give one of them another name, or remove the old one with `sealpipe batch "
                "purge NAME`"
            ),
        )
    if batch.content[_ROWS] == rows_digest and stored.dump_options() == definition.dump_options():
        return SyncResult(_save(store, batch, dumped, rows_digest))
    now = store.now()
    new = (
        NewRow(row.key, State.NEW, now, RowContent(row.values, Progress()).to_members())
        for row in definition.rows
    )
    store.add_rows(batch, new)
    changed: list[str] = []
    gone: list[str] = []
    held, schedule = 0, make_schedule(definition)
    by_key = {row.key: row for row in definition.rows}
    for row in store.list_rows(batch, contents=True):
        content = RowContent.load(row)
        key = row.key or ""
        found = by_key.get(key)
        if not is_over(State(row.state)):
            if found is None:
                if row.due_at is None or _rests(row, content.progress, schedule, is_gone=True):
                    gone.append(key)
            elif (
                content.progress.digest
                and content.progress.digest != render_row(definition, found).digest
            ):
                changed.append(key)
        after = _compare(content, None if found is None else found.values)
        if after != content:
            held += not _save_row(store, batch, row, after, schedule)
    # Without the digest, the next run compares again what another worker holds now.
    batch = _save(store, batch, dumped, "" if held else rows_digest)
    return SyncResult(batch, tuple(sorted(changed)), tuple(sorted(gone)))


def _name_rows(keys: Sequence[str]) -> str:
    names = ", ".join(escape_text(key, 60) for key in keys[:_NAMED])
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f"row {names} is" if len(keys) == 1 else f"{len(keys)} rows ({names}{more}) are"


def _compare(content: RowContent, values: Mapping[str, str] | None) -> RowContent:
    if values is None:
        return content._replace(is_gone=True)
    newer = None if dict(values) == dict(content.values) else values
    return content._replace(newer=newer, is_gone=False)


def _rests(row: Row, progress: Progress, schedule: Schedule, *, is_gone: bool) -> bool:
    """Return whether nothing is done with a row by itself."""
    state = State(row.state)
    if state is State.BLOCKED and get_phase(progress) is State.NEW:
        return True  # before anything is known to be out, somebody decides
    return find_next(state, progress, schedule, 0, is_gone=is_gone).step is Step.REST


def _save_row(
    store: BatchStore, batch: Batch, row: Row, content: RowContent, schedule: Schedule
) -> bool:
    """Note what the file says beside a row. Returns whether nobody works on it."""
    with store.taking(batch, row.id) as taken:
        if taken is None:
            return False
        before = RowContent.load(taken)
        events: list[Members] = []
        due_at = taken.due_at
        if content.is_gone != before.is_gone:
            events = [{"what": "gone" if content.is_gone else "back"}]
            rests = _rests(taken, before.progress, schedule, is_gone=content.is_gone)
            due_at = None if rests else store.now()
        elif content.newer != before.newer:
            events = [{"what": "changed" if content.newer is not None else "changed back"}]
        store.save(
            taken,
            state=taken.state,
            due_at=due_at,
            content=content._replace(progress=before.progress, options=before.options).to_members(),
            events=events,
        )
        return True


def _save(store: BatchStore, batch: Batch, dumped: Mapping[str, Any], rows_digest: str) -> Batch:
    content = {**batch.content, _DEFINITION: dumped, _ROWS: rows_digest}
    return batch if batch.content == content else store.save_batch(batch, content)


def digest(members: Any) -> str:
    """Return what identifies JSON members: SHA-256 in hex."""
    return sha256(jsontext.dumps(members).encode("utf-8", "surrogatepass")).hexdigest()


def make_plan(
    store: BatchStore, definition: BatchDefinition, service: str, rows_per_hour: int | None = None
) -> BatchPlan:
    """Plan a run of a file at a service, given by its base URL.

    Nothing is sent, and no row is changed.

    `rows_per_hour` is the machine's limit. Raises UsageError, StateError.
    """
    batch = store.find_batch(definition.name)
    rows = () if batch is None else store.list_rows(batch, contents=True)
    stored = {row.key or "": row for row in rows}
    entries = (FileEntry(row.key, render_row(definition, row).digest) for row in definition.rows)
    planned = plan_rows(entries, stored, make_schedule(definition), store.now())
    # Others may read a plan, and a password in a cell could be guessed by a plain digest of it.
    hide = partial(hide_digest, store.credential, definition.name)
    hidden = tuple(row._replace(digest=row.digest and hide(row.digest)) for row in planned)
    if rows_per_hour is not None:
        hidden = mark_over(hidden, RowLimit(store, rows_per_hour).count_left() or 0, rows_per_hour)
    return BatchPlan(definition.name, service, hide(digest(definition.dump())), hidden)
