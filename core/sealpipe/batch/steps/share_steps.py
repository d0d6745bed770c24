"""The steps of a row that hands out secrets.

Create the share, deliver its link, find out whether it was opened, end.

Of a share with one view and no passcode, used up is opened. Of any other, only the access log says,
where the plan has one. What the service does not tell is `unknown`, and never guessed.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from sealpipe import actions
from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.steps.creating import (
    create_once,
    find_begun,
    find_created,
    make_second_error,
    note_created,
)
from sealpipe.batch.steps.reminding import remind
from sealpipe.batch.steps.request_steps import finish_ending
from sealpipe.batch.steps.row_outbox import RowOutbox
from sealpipe.batch.steps.row_work import (
    BlockedError,
    RowWork,
    StepResult,
    Steps,
    expire_undelivered,
    finish_delivery,
    mark_unclear,
    to_datetime,
)
from sealpipe.batch.steps.states import Event, Progress, Step, skip_reminders
from sealpipe.errors import IdempotencyConflictError, NotFoundError, StateError
from sealpipe.expire.share import expire_share
from sealpipe.request.create import SecureRequest
from sealpipe.resume import finish_entry
from sealpipe.share import post
from sealpipe.share.options import ShareJob, plan_share
from sealpipe.share.post import Share
from sealpipe.share.views import MARGIN, View, fetch_log, judge_ended, was_opened
from sealpipe.state.entry import Entry


def create_share(work: RowWork) -> StepResult:
    """Create the row's share, or finish what an earlier process began."""
    begun = find_begun(work)
    if begun.doubt:
        raise BlockedError(
            f"it is not known whether the share was created: {begun.doubt}",
            remedy=(
                f"`{work.name_command('reissue')}` creates another; the first, if it exists, "
                "was sent to nobody"
            ),
        )
    try:
        if begun.entry is None:
            created: Share | SecureRequest = create_once(
                work, post.share, make_job(work, is_new=True)
            )
        else:
            created = finish_entry(work.session, begun.entry)
    except IdempotencyConflictError:
        raise make_second_error(
            work, "a share of this row was created within the last 24 hours"
        ) from None
    return note_created(work, created)


def deliver_share(work: RowWork) -> StepResult:
    """Deliver link and passcode: the messages that are left."""
    expired = expire_undelivered(work)
    if expired is not None:
        return expired
    created = find_created(work)
    if work.schedule.watches:
        return finish_delivery(work, created, Event.DELIVERED, keeps_link=True)
    result = finish_delivery(work, created, Event.SETTLED)
    # What may not have arrived is looked at no further, but somebody has to decide.
    event = Event.DELIVERED if result.progress.unclear else Event.SETTLED
    return result._replace(event=event, progress=replace(result.progress, outcome="delivered"))


def _open_entry(work: RowWork) -> Entry:
    """Return the share's outbox entry, which alone has its link."""
    entry = RowOutbox(work.store, work.batch, work.row).open()
    if entry is None:
        raise BlockedError(
            "the database no longer has the share's link",
            remedy=f"run `{work.name_command('reissue')}`",
        )
    return entry


def find_view(work: RowWork) -> View:
    """Find out whether the share was opened, by the access log or the active shares."""
    now, progress = work.now(), work.progress
    # before the log is read, which then has all that it will have
    is_over = has_ended(work) if progress.is_expiry_unknown else _is_over(progress, now)
    log = fetch_log(work.session, progress.short_code)
    created_at = None if progress.created_at is None else to_datetime(progress.created_at)
    opened = was_opened(log, created_at)
    if opened is not None:
        return View(opened, is_over)
    is_used_up_by_opening = _is_used_up_by_opening(work)
    active = work.listing.fetch_shares(progress.touched_at or 0)
    if progress.short_code in active:
        return View(False if is_used_up_by_opening else None, ended=False)
    opened = judge_ended(
        work.session,
        progress.short_code,
        is_over=progress.is_expiry_unknown
        or _is_over(progress, now + MARGIN // timedelta(microseconds=1)),
        is_used_up_by_opening=is_used_up_by_opening,
    )
    return View(opened, ended=True)


def _is_over(progress: Progress, now: int) -> bool:
    return progress.expires_at is not None and now >= progress.expires_at


def has_ended(work: RowWork) -> bool:
    """Return whether the link no longer works."""
    active = work.listing.fetch_shares(work.progress.touched_at or 0)
    return work.progress.short_code not in active


def _is_used_up_by_opening(work: RowWork) -> bool:
    """Return whether only one view uses the share up: wrong passcodes would, too."""
    job = make_job(work)
    return job.views == 1 and job.passcode is None


def look(work: RowWork) -> StepResult:
    """Look whether the share was opened."""
    view = find_view(work)
    now = work.now()
    progress = replace(
        work.progress, looked_at=now, is_unopened=None if view.opened is None else not view.opened
    )
    if view.opened:
        progress = replace(progress, used_at=now, outcome="opened")
        return _finish(work, Event.USED, progress)
    if view.ended:
        progress = replace(progress, outcome="unknown" if view.opened is None else "unopened")
        return _finish(work, Event.EXPIRED, progress)
    return StepResult(Event.RECOVERED, progress)


def _finish(work: RowWork, event: Event, progress: Progress) -> StepResult:
    """End the share's outbox entry: nobody will send its link again."""
    entry = RowOutbox(work.store, work.batch, work.row).open()
    if entry is not None:
        entry.end()
    return StepResult(event, progress, [{"what": progress.outcome}])


def remind_recipient(work: RowWork) -> StepResult:
    """Look once more; if the share is known to be unopened, send its link again."""
    looked = look(work)
    if looked.event is not Event.RECOVERED:
        return looked
    progress = skip_reminders(looked.progress, work.schedule, work.now())
    if not progress.is_unopened:
        return StepResult(
            Event.RECOVERED, progress, [{"what": "not reminded", "because": "unknown"}]
        )
    if has_ended(work):  # the access log does not say so
        return _finish(work, Event.EXPIRED, replace(progress, outcome="unopened"))
    unclear = send_reminder(work, str(progress.reminders))
    progress = replace(progress, touched_at=work.now(), reminded=progress.reminded + 1)
    history = [{"what": "reminded", "unclear": list(unclear)}]
    return StepResult(Event.RECOVERED, mark_unclear(work, progress, unclear), history)


def send_reminder(work: RowWork, number: str) -> tuple[str, ...]:
    """Send the share's link once more."""
    entry = _open_entry(work)
    share = finish_entry(work.session, entry)
    describe = partial(actions.describe_entry, work.session, entry.meta)
    return remind(work, share.link, make_job(work), describe, number)


def reissue_share(work: RowWork) -> StepResult:
    """Begin the next generation, because the share expired unopened."""
    progress = replace(work.progress.next_generation(), reissued=work.progress.reissued + 1)
    return StepResult(
        Event.RENEWED, progress, [{"what": "reissued"}], generation=work.row.generation + 1
    )


def end_share_row(work: RowWork) -> StepResult:
    """Expire the share, because somebody cancels or reissues the row."""
    progress = work.progress
    if not progress.short_code:
        try:
            entry = RowOutbox(work.store, work.batch, work.row).open()
            begun = None if entry is None else create_share(work)
        except DatabaseUnavailableError:
            raise
        except (BlockedError, StateError):
            begun = None  # if it exists, its link was sent to nobody, and is in nobody's hands
        if begun is None:
            return finish_ending(progress, work.row.generation)
        progress = replace(begun.progress, wish=progress.wish)
    try:
        expire_share(work.session, progress.short_code)
    except NotFoundError as error:
        if (error.status, error.error_code) != (404, 1):
            raise
    entry = RowOutbox(work.store, work.batch, work.row).open()
    if entry is not None:
        entry.end()
    return finish_ending(progress, work.row.generation)


def make_job(work: RowWork, *, is_new: bool = False) -> ShareJob:
    """Return the job of the row's share. Raises UsageError."""
    return plan_share(**work.list_arguments(is_new=is_new))


SHARE_STEPS: Final[Steps] = {
    Step.CREATE: create_share,
    Step.DELIVER: deliver_share,
    Step.POLL: look,
    Step.REMIND: remind_recipient,
    Step.REISSUE: reissue_share,
    Step.END: end_share_row,
}
"""What the engine runs for each step."""
