"""Brings a batch up to date after its database was lost or restored from a backup.

Creates and sends nothing.

The key of each request is derived from the credential and its row, so the public keys that the
service lists say which row and generation a request belongs to. What was submitted is stored once:
a sink's own marker decides. What cannot be known blocks its row, and names the command that
decides: whether a share exists, or a request that has ended; whether a message was sent since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from sealpipe.batch.engine.advance import Engine
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.request_keys import find_request
from sealpipe.batch.steps.row_work import BlockedError, RowWork, StepResult, mark_unclear
from sealpipe.batch.steps.states import Event, State, get_phase, is_over, skip_reminders


class Adopted(NamedTuple):
    """A row that has changed.

    `is_blocked`: somebody has to decide; without a `short_code`, even what exists.
    """

    key: str
    short_code: str
    generation: int
    is_blocked: bool


def adopt_rows(engine: Engine) -> Iterator[Adopted]:
    """Find requests that the database does not know, and block rows that stay unclear."""
    for row in engine.store.list_rows(engine.batch, contents=True):
        is_share_over = engine.definition.kind == "share" and is_over(State(row.state))
        if is_share_over or get_phase(RowContent.load(row).progress) is State.ENDING:
            continue
        with engine.store.taking(engine.batch, row.id) as taken:
            if taken is None:
                continue
            advanced = engine.carry_out(taken, _find)
        if advanced.changes:
            progress = RowContent.load(advanced.row).progress
            is_blocked = State(advanced.row.state) is State.BLOCKED
            yield Adopted(row.key or "", progress.short_code, advanced.row.generation, is_blocked)


def _find(work: RowWork) -> StepResult:
    """Look for the row's request; mark as unclear what was sent since the database was saved."""
    progress, kind = work.progress, work.definition.kind
    found = find_request(work) if kind == "request" else None
    if found is not None and found.progress.short_code != progress.short_code:
        return found  # of this generation, or of a later one
    if is_over(State(work.row.state)):
        return StepResult(Event.RECOVERED, progress)
    if get_phase(progress) is State.NEW:
        ended = " and has ended" if kind == "request" else ""
        raise BlockedError(
            (
                f"it is not known whether a {kind} of this row was created{ended} since the "
                "database was saved"
            ),
            remedy=(
                f"if nobody got its link, or nobody needs it, `{work.name_command('reissue')}` "
                "makes one"
            ),
        )
    now, recipients = work.now(), [str(each) for each in work.render().arguments.get("send", ())]
    if progress.delivered_at is None:
        progress = replace(progress, delivered_at=now, touched_at=now)
        return StepResult(
            Event.ADOPTED, mark_unclear(work, progress, recipients), [{"what": "adopted"}]
        )
    passed = skip_reminders(progress, work.schedule, now)
    if passed.reminders == progress.reminders:
        return StepResult(Event.RECOVERED, progress)
    return StepResult(Event.ADOPTED, mark_unclear(work, passed, recipients), [{"what": "adopted"}])
