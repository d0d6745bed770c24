"""Send a share's link and passcode, each message once.

A message is journaled as `sending` before its channel is called, and as `sent` afterwards. A
message left at `sending` may have arrived: that is reported, and it is sent again only on request.
A `failed` message was certainly not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from sealpipe import policy
from sealpipe.api.responses import escape_text
from sealpipe.budget import MAX_BACKOFF
from sealpipe.cancellation import CancelledCallError
from sealpipe.delivery.messages import MessageContext, build_link_message, build_passcode_message
from sealpipe.delivery.recipients import Recipient
from sealpipe.errors import (
    NOT_TAKEN,
    DeliveryError,
    PluginError,
    SealpipeError,
    StateError,
    UnavailableError,
    UnknownOutcomeError,
    UsageError,
)
from sealpipe.plugin import Message
from sealpipe.registry.channels import confirms_delivery, send_message
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sources.resolve import MAX_TRIES
from sealpipe.state.entry import Entry

DeliveryState = Literal["pending", "sending", "sent", "failed"]


class Deliverable(Protocol):
    """A share or a request, whose link can be delivered."""

    @property
    def kind(self) -> str:
        """`share` or `request`."""

    @property
    def link(self) -> Secret:
        """The link that its recipients get."""

    short_code: str
    title: str | None
    expires_at: datetime | None
    expiry_known: bool
    warnings: tuple[str, ...]
    entry: Entry | None
    deliveries: Deliveries | None


@dataclass(slots=True)
class TrackedDelivery:
    """One message and its state."""

    recipient: Recipient
    state: DeliveryState = "pending"


@dataclass(slots=True)
class Deliveries:
    """The messages of a share or a request."""

    items: Sequence[TrackedDelivery]
    passcode: Secret | None = field(repr=False)
    kind: str = "share"
    views: int | None = None
    template: str | None = field(default=None, repr=False)
    is_reminder: bool = False

    def sends(self, what: str) -> bool:
        """Return whether the link, or the passcode, is sent to anyone."""
        return any(delivery.recipient.content == what for delivery in self.items)


def restore_deliveries(
    meta: Mapping[str, Any], states: Mapping[int, DeliveryState]
) -> Deliveries | None:
    """Restore the messages from an outbox entry's notes; None if there are none."""
    recipients = [Recipient(*row) for row in meta.get("recipients", ())]
    items = [
        TrackedDelivery(each, states.get(number, "pending"))
        for number, each in enumerate(recipients)
    ]
    if not items:
        return None
    is_reminder = meta.get("is_reminder", False)
    return Deliveries(
        items, meta["passcode"], meta["kind"], meta["views"], meta["message_template"], is_reminder
    )


def deliver(session: Session, share: Deliverable, *, resend: bool = False) -> None:
    """Send the messages that are not sent yet. A failure does not stop the others.

    Raises DeliveryError if any message is left.
    """
    if share.deliveries is None:
        return
    is_expired = share.expires_at is not None and share.expires_at <= datetime.now(UTC)
    if is_expired and any(delivery.state != "sent" for delivery in share.deliveries.items):
        raise _make_delivery_error(
            share,
            f"the {share.kind} {share.short_code} expired before all its messages were out",
            _describe_drop(share),
        )
    failures: list[tuple[TrackedDelivery, SealpipeError]] = []
    for number, delivery in enumerate(share.deliveries.items):
        if delivery.state != "sent":
            error = _deliver_one(session, share, number, resend=resend)
            outcome = "unclear" if delivery.state == "sending" else delivery.state
            recipient = str(delivery.recipient)
            share.warnings += policy.report_delivery(
                session, share.short_code, recipient, delivery.recipient.content, outcome
            )
            if error is not None:
                failures.append((delivery, error))
    if failures:
        raise _summarize_failures(share, failures)


def _deliver_one(
    session: Session, share: Deliverable, number: int, *, resend: bool
) -> SealpipeError | None:
    assert share.deliveries is not None  # noqa: S101 - its caller checked
    delivery = share.deliveries.items[number]
    try:
        if delivery.state == "sending" and not resend and not _can_confirm(session, delivery):
            return UnknownOutcomeError(
                "an earlier attempt was interrupted: the message may have arrived"
            )
        budget = session.start_budget()
        for tries in range(1, MAX_TRIES + 1):
            try:
                _send(session, share, number)
                return None
            except UnavailableError as error:
                delay = max(budget.draw_backoff(tries), min(MAX_BACKOFF, error.retry_after or 0.0))
                if tries == MAX_TRIES or delay >= budget.get_remaining():
                    raise
            session.wait(delay)
    except (PluginError, UsageError) as error:
        return error
    return None


def _send(session: Session, share: Deliverable, number: int) -> None:
    """Journal, send, journal."""
    assert share.deliveries is not None  # noqa: S101 - as above
    delivery = share.deliveries.items[number]
    registry, recipient = session.registry(), delivery.recipient
    registry.channel(recipient.channel)  # raises for missing settings before the message is noted
    _note_state(share, number, "sending")
    try:
        send_message(registry, recipient.channel, _build_message(share, recipient), recipient.to)
    except (*NOT_TAKEN, CancelledCallError):  # cancelled before the channel was called
        _note_state(share, number, "failed", is_required=False)
        raise
    _note_state(share, number, "sent", is_required=False)


def _can_confirm(session: Session, delivery: TrackedDelivery) -> bool:
    return confirms_delivery(session.registry(), delivery.recipient.channel)


def _note_state(
    share: Deliverable, number: int, state: DeliveryState, *, is_required: bool = True
) -> None:
    assert share.deliveries is not None  # noqa: S101 - as above
    try:
        if share.entry is not None:
            share.entry.note_delivery(number, state)
    except StateError as error:
        if is_required:
            raise
        # Harmless: after a kill, the message counts as possibly sent.
        share.warnings += (error.message,)
    share.deliveries.items[number].state = state


def _build_message(share: Deliverable, recipient: Recipient) -> Message:
    deliveries = share.deliveries
    assert deliveries is not None  # noqa: S101 - as above
    passcode = deliveries.passcode
    message_context = MessageContext(
        deliveries.kind,
        share.title,
        share.short_code,
        share.expires_at,
        deliveries.views,
        passcode is not None,
        deliveries.template,
        share.expiry_known,
        deliveries.is_reminder,
    )
    if recipient.content == "link":
        return build_link_message(share.link, message_context)
    if passcode is None:
        raise UsageError("the outbox entry holds no passcode", remedy=_describe_drop(share))
    return build_passcode_message(passcode, message_context)


def _summarize_failures(
    share: Deliverable, failures: Sequence[tuple[TrackedDelivery, SealpipeError]]
) -> DeliveryError:
    """Return one error for all failed messages, each with its reason and its next step."""
    lines = []
    for delivery, error in failures:
        recipient = delivery.recipient
        may_have_arrived = delivery.state == "sending"
        next_step = f" ({error.remedy})" if error.remedy else ""
        verb = "may not have reached" if may_have_arrived else "did not reach"
        lines.append(
            escape_text(
                f"the {recipient.content} {verb} {recipient.shown}: {error.message}{next_step}", 600
            )
        )
    unclear = [delivery.state == "sending" for delivery, _ in failures]
    return _make_delivery_error(share, "; ".join(lines), _describe_rest(share, unclear))


def _describe_rest(share: Deliverable, unclear: Sequence[bool]) -> str:
    """Say how the failed messages get out; `unclear` says of each whether it may have arrived."""
    if share.entry is None:
        return f"the {share.kind} exists: its link is in the error's `share`"
    commands = share.entry.commands
    parts = [f"the {share.kind} exists"]
    if not all(unclear):
        parts.append(f"`{commands.finish}` delivers what is left")
    if any(unclear):
        parts.append(
            f"ask the recipient whether it arrived: if not, `{commands.resend}` sends it once more"
        )
        if commands.keeps_link:
            parts.append(
                f"if it did, `{commands.discard}` only removes the entry, and the {share.kind} "
                "stays"
            )
    return "; ".join(parts)


def _describe_drop(share: Deliverable) -> str:
    """Say how to give up what is left."""
    if share.entry is None:
        return f"the {share.kind} exists: its link is in the error's `share`"
    return f"drop what is left with `{share.entry.commands.discard}`, and share again"


def _make_delivery_error(share: Deliverable, message: str, remedy: str) -> DeliveryError:
    entry = share.entry
    error = DeliveryError(
        escape_text(message, 4000), remedy=remedy, outbox_id=None if entry is None else entry.id
    )
    error.share = share
    return error
