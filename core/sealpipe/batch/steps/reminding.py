"""Sends the link of a row once more, as an entry of the second outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sealpipe import policy
from sealpipe.batch.steps.row_outbox import ReminderEntry
from sealpipe.batch.steps.row_work import RowWork, send_messages, to_datetime
from sealpipe.delivery.recipients import Recipient, resolve_recipients
from sealpipe.delivery.send import Deliveries, TrackedDelivery
from sealpipe.plugin import OutgoingAction
from sealpipe.request.options import RequestJob
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import ShareJob


@dataclass(slots=True)
class Reminder:
    """A link that is sent once more: what `deliver` needs of it."""

    kind: str
    link: Secret
    short_code: str
    title: str | None
    expires_at: datetime | None
    entry: Any = field(repr=False)
    deliveries: Deliveries | None
    expiry_known: bool
    warnings: tuple[str, ...] = ()


def remind(
    work: RowWork,
    link: Secret,
    job: RequestJob | ShareJob,
    describe: Callable[[], OutgoingAction],
    number: str,
) -> tuple[str, ...]:
    """Send the link once more, each message once for this `number`.

    Returns who may or may not have got it.

    `describe` describes to policies what the link opens, as when it was made. Raises DeliveryError,
    and what policies raise.
    """
    if job.delivery is None:
        return ()
    recipients = resolve_recipients(job.delivery, work.session.registry, {})
    recipients = tuple(each for each in recipients if each.content == "link")
    progress = work.progress
    expires_at = None if progress.expires_at is None else to_datetime(progress.expires_at)
    action = describe()
    action = action._replace(
        recipients=tuple(each.address for each in recipients),
        channels=_identify_channels(work.session, recipients),
        expires_at=expires_at,
        short_codes=(progress.short_code,),
        resumed=True,
    )
    entry = ReminderEntry(work.store, work.batch, work.row, number)
    items = [TrackedDelivery(each, entry.read_state(at)) for at, each in enumerate(recipients)]
    kind = work.definition.kind
    views = job.views if kind == "share" else None
    deliveries = Deliveries(items, None, kind, views, work.render().reminder, is_reminder=True)
    reminder = Reminder(
        kind,
        link,
        progress.short_code,
        action.title,
        expires_at,
        entry,
        deliveries,
        not progress.is_expiry_unknown,
    )
    return policy.run_under_policy(
        work.session,
        action,
        lambda _: send_messages(work, reminder),
        lambda _: {"outcome": "reminded"},
    )


def _identify_channels(session: Session, recipients: Sequence[Recipient]) -> tuple[str, ...]:
    return tuple(session.registry().identify("channel", each.channel) for each in recipients)
