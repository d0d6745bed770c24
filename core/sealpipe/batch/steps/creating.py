"""What creating a share and creating a request have in common.

Go on with what was begun, and never make a second one.

The idempotency key of a row's generation is derived from the credential and the row. So even if the
database was lost, or restored from a backup, and knows of no create, the service refuses a second
one for 24 hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from sealpipe.batch.database.records import Effect
from sealpipe.batch.database.sealing import derive_idempotency_key
from sealpipe.batch.steps.row_outbox import RowOutbox
from sealpipe.batch.steps.row_work import (
    BlockedError,
    RowWork,
    StepResult,
    to_datetime,
    to_microseconds,
)
from sealpipe.batch.steps.states import Event
from sealpipe.errors import CustodyError
from sealpipe.request.create import SecureRequest
from sealpipe.resume import finish_entry
from sealpipe.share.post import Share
from sealpipe.state.entry import Entry

T = TypeVar("T")

_TOO_LATE: Final = "it is too late to send the same bytes again"
_ROTATED: Final = "the API key was rotated meanwhile"


class Begun(NamedTuple):
    """A create that was begun before.

    `entry` is None if there is none, or it may not be opened any more.

    `doubt` says why it is not known whether the service has it, and its bytes are never sent again;
    empty if they are.
    """

    entry: Entry | None
    doubt: str


def find_begun(work: RowWork) -> Begun:
    """Return what an earlier process began for this generation, and use its options."""
    create = work.store.effects.find(work.row, work.name_effect("create"))
    if create is not None and create.state != "failed":
        work.options = create.content.get("options")
    elif not work.is_gone or work.options is None:  # else the file says nothing of the row any more
        work.options = work.definition.dump_options()
    if _was_sent_under_another_key(work, create):
        return Begun(None, _ROTATED)
    entry = RowOutbox(work.store, work.batch, work.row).open()
    is_late = (
        entry is not None and entry.response is None and entry.is_too_old(to_datetime(work.now()))
    )
    return Begun(entry, _TOO_LATE if is_late else "")


def _was_sent_under_another_key(work: RowWork, create: Effect | None) -> bool:
    """Return whether a create was on its way when the API key was rotated.

    Its bytes are never sent again.
    """
    return (
        create is not None
        and create.state == "sending"
        and create.content.get("key_id") != work.session.credential.key_id
    )


def give_up_create(work: RowWork) -> None:
    """Record that a create came to nothing, so that another can begin."""
    effect = work.store.effects.find(work.row, work.name_effect("create"))
    if effect is not None and effect.state == "sending":
        work.store.effects.finish(effect, "failed", {"ended": True})


def create_once(work: RowWork, make: Callable[..., T], options: Any) -> T:
    """Make a share or request, under the idempotency key of this row's generation.

    Raises IdempotencyConflictError if the service has one already, and BlockedError.
    """
    row, kind = work.row, work.definition.kind
    outbox = RowOutbox(work.store, work.batch, row, work.options)
    key = derive_idempotency_key(
        work.session.credential, kind, work.batch.name, work.key, row.generation
    )
    # A sink's marker belongs to the values of one attempt: the next one may fetch others.
    with _block_on_custody(work):
        return make(work.session, options, outbox, idempotency_key=key, marker=str(uuid4()))


@contextmanager
def _block_on_custody(work: RowWork) -> Iterator[None]:
    """Let a person decide: each repetition would make a share that is expired at once."""
    try:
        yield
    except CustodyError as error:
        raise BlockedError(
            error.message,
            remedy=f"{error.remedy}; then `{work.name_command('reissue')}` shares again",
        ) from None


def make_second_error(work: RowWork, problem: str) -> BlockedError:
    """Make the error for something that the service has and the database does not know."""
    return BlockedError(
        f"{problem}; the database is older, or another one has this batch, too",
        remedy=(
            f"if nobody got its link, or nobody needs it, `{work.name_command('reissue')}` "
            "makes another"
        ),
    )


def find_created(work: RowWork) -> Share | SecureRequest | None:
    """Return what this process or an earlier one created, or None if its entry is gone."""
    if work.created is not None:
        return work.created
    entry = RowOutbox(work.store, work.batch, work.row).open()
    return None if entry is None else finish_entry(work.session, entry)


def note_created(work: RowWork, created: Share | SecureRequest, **known: Any) -> StepResult:
    """Record what was created or found, and return what the step came to."""
    work.created = created
    progress = replace(
        work.progress,
        digest=work.render().digest,
        short_code=created.short_code,
        key_id=work.session.credential.key_id,
        created_at=work.now(),
        expires_at=to_microseconds(created.expires_at),
        is_expiry_unknown=not created.expiry_known,
        **known,
    )
    return StepResult(
        Event.CREATED, progress, [{"what": "created", "short_code": created.short_code}]
    )
