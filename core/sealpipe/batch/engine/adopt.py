"""Finds a batch's requests again after its database was lost or restored from a backup.

The key of each request is derived from the credential and its row, so the public keys that the service lists say which
row and generation a request belongs to. What was submitted is stored once: a sink's own marker decides. What cannot be
known, such as a reminder that was sent since, blocks the row, and names the command that decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from sealpipe.batch.engine.advance import LEASE, Engine
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.request_keys import find_request
from sealpipe.batch.steps.states import Event, State, get_phase, is_over, skip_reminders
from sealpipe.batch.steps.work import RowWork, StepResult, mark_unclear
from sealpipe.errors import UsageError
from sealpipe.flows import Flow


class Adopted(NamedTuple):
    """A row whose request was found at the service, and is now known. `is_blocked`: somebody has to decide."""

    key: str
    short_code: str
    generation: int
    is_blocked: bool


def adopt_rows(engine: Engine) -> Iterator[Adopted]:
    """Find the requests of rows that know of none, or of an earlier generation. Nothing is created or sent.

    Raises UsageError for a batch of shares: nothing at the service says which row a share belongs to.
    """
    if engine.definition.kind == "share":
        raise UsageError(
            "nothing at the service says which row a share belongs to, so shares cannot be adopted",
            remedy="restore the database from a backup; a share that nobody knows of expires by itself",
        )
    holder = f"{os.urandom(6).hex()}/adopt"
    for row in engine.store.list_rows(engine.batch, contents=True):
        if is_over(State(row.state)) or get_phase(RowContent.load(row).progress) is State.ENDING:
            continue
        held = engine.store.claim_row(engine.batch, row.id, holder, LEASE, due=False)
        if held is None:
            continue
        advanced = engine.carry_out(held, _find)
        progress = RowContent.load(advanced.row).progress
        if any(change.what == "adopted" for change in advanced.changes):
            is_blocked = State(advanced.row.state) is State.BLOCKED
            yield Adopted(row.key or "", progress.short_code, advanced.row.generation, is_blocked)


def _find(work: RowWork) -> Flow[StepResult]:
    """Look for the row's request, and mark as unclear what may have been sent since the database was saved."""
    found = yield from find_request(work)
    if found is not None and found.progress.short_code != work.progress.short_code:
        return found  # of this generation, or of a later one
    progress = work.progress
    if get_phase(progress) is State.NEW:
        return StepResult(Event.RECOVERED, progress)
    now, recipients = work.now(), [str(each) for each in work.render().arguments.get("send", ())]
    if progress.delivered_at is None:
        progress = replace(progress, delivered_at=now, touched_at=now)
        return StepResult(Event.ADOPTED, mark_unclear(work, progress, recipients), [{"what": "adopted"}])
    passed = skip_reminders(progress, work.schedule, now)
    if passed.reminders == progress.reminders:
        return StepResult(Event.RECOVERED, progress)
    return StepResult(Event.ADOPTED, mark_unclear(work, passed, recipients), [{"what": "adopted"}])
