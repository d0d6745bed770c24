"""The steps of a row that asks for secrets.

Create the request, deliver its link, look for a submission, remind, end.

A look costs one GET. The request's own key, derived from the credential and the row, identifies it
in the service's list: so a database that was lost or restored makes no second request.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from sealpipe.api import requests as api
from sealpipe.batch.database.sealing import derive_request_key
from sealpipe.batch.file.render import RenderedRow
from sealpipe.batch.steps.creating import (
    create_once,
    find_begun,
    find_created,
    give_up_create,
    make_second_error,
    note_created,
)
from sealpipe.batch.steps.reminding import remind
from sealpipe.batch.steps.request_keys import find_key_pair, find_request
from sealpipe.batch.steps.row_outbox import make_ledger_opener
from sealpipe.batch.steps.row_work import (
    RowWork,
    StepResult,
    Steps,
    expire_undelivered,
    finish_delivery,
    mark_unclear,
    to_datetime,
    to_microseconds,
)
from sealpipe.batch.steps.states import MINUTE, Event, Progress, Step, skip_reminders
from sealpipe.budget import call
from sealpipe.collect import poll
from sealpipe.collect.options import CollectPlan
from sealpipe.errors import (
    IdempotencyConflictError,
    NotFoundError,
    UnreadableSubmissionError,
    UsageError,
)
from sealpipe.expire.request import expire_request
from sealpipe.parsing import format_time
from sealpipe.request import create
from sealpipe.request.create import SecureRequest
from sealpipe.request.options import RequestJob, plan_request
from sealpipe.resume import finish_entry
from sealpipe.secret import Secret
from sealpipe.share.post import Share
from sealpipe.state.receipt import Receipt
from sealpipe.wire import link
from sealpipe.wire.keys import KeyPair


def create_request(work: RowWork) -> StepResult:
    """Create the row's request, or finish what an earlier process began."""
    begun = find_begun(work)
    entry = begun.entry
    if entry is None or begun.doubt:
        found = find_request(work)
        if found is not None and entry is None:
            return found
        if found is not None and entry is not None:
            # Nothing was sent to anybody before the response was there.
            entry.note_response(_make_response(found.progress))
        elif begun.doubt:
            # The service has no such request, and will not make it from those bytes any more.
            give_up_create(work)
            entry = None
    asked_at = work.now()
    try:
        if entry is None:
            created: Share | SecureRequest = create_once(
                work, create.request, make_job(work, is_new=True)
            )
        else:
            created = finish_entry(work.session, entry)
    except IdempotencyConflictError:
        found = find_request(work, asked_at)
        if found is not None:
            return found
        problem = "a request of this row was created within the last 24 hours, and has ended"
        raise make_second_error(work, problem) from None
    assert isinstance(created, SecureRequest)  # noqa: S101 - the row asks for secrets
    return note_created(work, created, public_key=created.public_key)


def _make_response(progress: Progress) -> dict[str, Any]:
    """Return what an outbox entry keeps of the response of a create."""
    expires_at = (
        None if progress.expires_at is None else format_time(to_datetime(progress.expires_at))
    )
    return {
        "short_code": progress.short_code,
        "expires_at": expires_at,
        "replayed": True,
        "expiry_known": expires_at is not None,
    }


def deliver_request(work: RowWork) -> StepResult:
    """Deliver the collect link: the messages that are left."""
    expired = expire_undelivered(work)
    if expired is not None:
        return expired
    created = find_created(work)
    return finish_delivery(work, created, Event.DELIVERED)


def look(work: RowWork) -> StepResult:
    """Ask for submissions, and store what came."""
    now, progress = work.now(), work.progress
    listed = call(api.list_submissions(progress.short_code), work.session.start_budget())
    progress = replace(progress, looked_at=now, submissions=len(listed.items))
    if listed.items:
        return collect(work, progress, listed)
    if progress.expires_at is not None and now >= progress.expires_at and has_ended(work):
        return StepResult(
            Event.EXPIRED, replace(progress, outcome="no submission"), [{"what": "expired"}]
        )
    return StepResult(Event.RECOVERED, progress)


def has_ended(work: RowWork) -> bool:
    """Return whether the link no longer works."""
    info = call(api.get(work.progress.short_code), work.session.start_budget())
    return info.has_ended


def collect(work: RowWork, progress: Progress, listed: api.Submissions) -> StepResult:
    """Store and confirm the submissions, and expire the request if the file says so."""
    times = [each.created_at for each in listed.items if each.created_at is not None]
    first = to_microseconds(min(times, default=None))
    # the service may tell any time, and a report has to draw it
    progress = replace(
        progress, used_at=progress.looked_at if first is None else max(0, min(first, work.now()))
    )
    rendered = work.render()
    if rendered.collect is None:  # somebody else collects them
        return StepResult(
            Event.USED, replace(progress, outcome="submitted"), [{"what": "submitted"}]
        )
    pair = find_key_pair(work)
    plan = _plan_collect(work, rendered, pair)
    jobs = tuple(replace(job, listed=listed) for job in plan.jobs)
    (result,) = poll.collect(work.session, replace(plan, jobs=jobs))
    error = result.problem()
    if error is not None:
        if isinstance(error, UnreadableSubmissionError) and not result.submissions:
            raise error.copy_with(
                remedy=f"`{work.name_command('reissue')}` asks again, with a new link; the "
                "ciphertext is kept"
            )
        raise error
    history = [{"what": "collected", "submissions": len(result.submissions), "late": result.late}]
    progress = replace(
        progress, submissions=result.count, collected=len(result.submissions), outcome="collected"
    )
    return StepResult(Event.USED, progress, history)


def _plan_collect(work: RowWork, rendered: RenderedRow, pair: KeyPair) -> CollectPlan:
    """Return how to collect the request, by what the file says now. Raises UsageError."""
    receipt = make_receipt(work)
    try:
        return rendered.make_collect(
            receipt, key=pair, state=make_ledger_opener(work.store, work.row)
        )
    except UsageError as error:  # what is out asks for something else than what [request] says now
        remedy = (
            "write ask and [collect] in the file as this request needs them, and run it "
            f"again: {error.remedy}"
        )
        raise UsageError(error.message, remedy=remedy) from None


def remind_submitter(work: RowWork) -> StepResult:
    """Look once more; if nobody has submitted and the link still works, send it again."""
    looked = look(work)
    if looked.event is not Event.RECOVERED:
        return looked
    if has_ended(work):
        progress = replace(looked.progress, outcome="no submission")
        return StepResult(Event.EXPIRED, progress, [{"what": "expired"}])
    progress = skip_reminders(looked.progress, work.schedule, work.now())
    if make_job(work).delivery is None:  # [remind] and its recipient are new in the file
        return StepResult(
            Event.RECOVERED, progress, [{"what": "not reminded", "because": "no recipient"}]
        )
    unclear = send_reminder(work, str(progress.reminders))
    now = work.now()
    progress = replace(progress, touched_at=now, reminded=progress.reminded + 1)
    history = [{"what": "reminded", "unclear": list(unclear)}]
    return StepResult(Event.RECOVERED, mark_unclear(work, progress, unclear), history)


def send_reminder(work: RowWork, number: str) -> tuple[str, ...]:
    """Send the collect link once more."""
    job = make_job(work)
    collect_link = Secret(link.collect_link(work.session.link_base_url, work.progress.short_code))
    describe = partial(create.describe_request, work.session, job, ())
    return remind(work, collect_link, job, describe, number)


def end_request(work: RowWork) -> StepResult:
    """Expire the request by rule D, because somebody cancels or reissues the row.

    Its submissions stay.
    """
    progress = work.progress
    if not progress.short_code:
        begun = _finish_begun(work)
        if begun is None:
            return finish_ending(progress, work.row.generation)
        progress = replace(begun.progress, wish=progress.wish)
    keep: Any = make_ledger_opener(work.store, work.row)
    try:
        ended = expire_request(work.session, progress.short_code, keep)
    except NotFoundError:  # purged at the service: it has ended, too
        return finish_ending(progress, work.row.generation)
    if ended.outcome == "expiring":
        soon = (to_microseconds(ended.expires_at) or work.now()) + MINUTE // 2
        return StepResult(Event.WITHDRAWN, progress, again_at=soon)
    return finish_ending(progress, work.row.generation, len(ended.submissions))


def _finish_begun(work: RowWork) -> StepResult | None:
    """Finish a create that was begun: what may exist must be ended, too."""
    effect = work.store.effects.find(work.row, work.name_effect("create"))
    return None if effect is None or effect.state == "failed" else create_request(work)


def finish_ending(progress: Progress, generation: int, submissions: int = 0) -> StepResult:
    """Return what comes after the end: a new generation, or nothing."""
    word = "reissued" if progress.wish == "reissue" else "cancelled"
    history = [{"what": word, "submissions": submissions}]
    if progress.wish == "reissue":
        renewed = progress.next_generation(is_asked_for=True)
        return StepResult(Event.RENEWED, renewed, history, generation=generation + 1)
    return StepResult(
        Event.ENDED,
        replace(progress, wish="", outcome="cancelled", submissions=submissions),
        history,
    )


def make_job(work: RowWork, *, is_new: bool = False) -> RequestJob:
    """Return the job of the row's request, under its own key. Raises UsageError."""
    pair = derive_request_key(
        work.session.credential, work.batch.name, work.key, work.row.generation
    )
    return plan_request(**work.list_arguments(is_new=is_new), key=pair)


def make_receipt(work: RowWork) -> Receipt:
    """Return the receipt of the row's request."""
    job = make_job(work)
    progress = work.progress
    expires_at = None if progress.expires_at is None else to_datetime(progress.expires_at)
    return Receipt(
        progress.short_code, progress.public_key, job.prompts, "given", expires_at, job.title
    )


REQUEST_STEPS: Final[Steps] = {
    Step.CREATE: create_request,
    Step.DELIVER: deliver_request,
    Step.POLL: look,
    Step.REMIND: remind_submitter,
    Step.END: end_request,
}
"""What the engine runs for each step."""
