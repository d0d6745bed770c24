"""Sends the link of a row once more.

Each message of a reminder is an effect, begun before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sealpipe import policy
from sealpipe.batch.database.records import Effect, make_conflict_error
from sealpipe.batch.steps.row_outbox import list_commands
from sealpipe.batch.steps.row_work import RowWork, send_messages, to_datetime
from sealpipe.delivery.recipients import Recipient, resolve_recipients
from sealpipe.delivery.send import Deliveries, DeliveryState, TrackedDelivery
from sealpipe.plugin import OutgoingAction
from sealpipe.request.options import RequestJob
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import ShareJob
from sealpipe.state.entry import EntryCommands


class EffectLog:
    """Records each message as an effect of the row, in place of an outbox entry."""

    def __init__(self, work: RowWork, prefix: str) -> None:
        self.id = work.row.id
        self._work = work
        self._prefix = prefix
        self._effects: dict[int, Effect] = {}

    def read_state(self, number: int) -> DeliveryState:
        """Return the state of a message."""
        effect = self._work.store.effects.find(self._work.row, f"{self._prefix}/{number}")
        if effect is None:
            return "pending"
        self._effects[number] = effect
        states: dict[str, DeliveryState] = {
            "sending": "sending",
            "done": "sent",
            "failed": "failed",
        }
        return states.get(effect.state, "pending")

    @property
    def commands(self) -> EntryCommands:
        """The commands for the row."""
        return list_commands(self._work.batch, self._work.row)

    def note_delivery(self, number: int, state: str) -> None:
        """Record the state of a message. Raises ConflictError if another worker has begun it."""
        effects, name = self._work.store.effects, f"{self._prefix}/{number}"
        if state != "sending":
            self._effects[number] = effects.finish(
                self._effects[number], "done" if state == "sent" else "failed", {}
            )
            return
        earlier = self._effects.get(number)
        # A channel that confirms: it may be repeated.
        if earlier is not None and earlier.state == "sending":
            self._effects[number] = effects.repeat(self._work.row, earlier, {})
            return
        effect = effects.begin(self._work.row, name, {})
        if effect is None:
            raise make_conflict_error("message")
        self._effects[number] = effect


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
    log = EffectLog(work, work.name_effect("remind", number))
    items = [TrackedDelivery(each, log.read_state(at)) for at, each in enumerate(recipients)]
    kind = work.definition.kind
    views = job.views if kind == "share" else None
    deliveries = Deliveries(items, None, kind, views, work.render().reminder, is_reminder=True)
    reminder = Reminder(
        kind,
        link,
        progress.short_code,
        action.title,
        expires_at,
        log,
        deliveries,
        progress.is_expiry_known,
    )
    return policy.run_under_policy(
        work.session,
        action,
        lambda _: send_messages(work, reminder),
        lambda _: {"outcome": "reminded"},
    )


def _identify_channels(session: Session, recipients: Sequence[Recipient]) -> tuple[str, ...]:
    return tuple(session.registry().identify("channel", each.channel) for each in recipients)
