"""What every step of a row works with, what it returns, and how the row's messages are sent.

A step does one thing that is due and can be repeated: whatever it does outside is an effect in the
database, begun by compare-and-set before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Any, Final, NamedTuple

from sealpipe.api.responses import escape_text
from sealpipe.batch.database.records import Batch, Row
from sealpipe.batch.database.sealing import Members
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import Place
from sealpipe.batch.file.options import Options
from sealpipe.batch.file.reading import get_lifetime, load_options
from sealpipe.batch.file.render import RenderedRow, render_row
from sealpipe.batch.file.rows import Row as FileRow
from sealpipe.batch.steps.content import MAX_PROBLEM
from sealpipe.batch.steps.listing import ServiceList
from sealpipe.batch.steps.states import Event, Progress, Schedule
from sealpipe.delivery.recipients import Recipient
from sealpipe.delivery.send import Deliverable, TrackedDelivery, deliver
from sealpipe.errors import DeliveryError, SealpipeError, UsageError
from sealpipe.parsing import redact_address
from sealpipe.registry.channels import confirms_delivery
from sealpipe.request.create import SecureRequest
from sealpipe.session import Session
from sealpipe.share.post import Share


@dataclass(slots=True)
class RowWork:
    """A row that this worker holds, and what its steps need."""

    session: Session
    store: BatchStore
    batch: Batch
    definition: BatchDefinition
    schedule: Schedule
    listing: ServiceList
    row: Row
    values: Mapping[str, str] = field(repr=False)
    """The row's cells, as they are out."""
    progress: Progress
    is_gone: bool = False
    """Whether the file no longer has the row."""
    options: Members | None = field(default=None, repr=False)
    """What `dump_options` returned when what is out was made; None: what the file says now."""
    takes_newer: bool = False
    """Whether `values` are newer than those of the row's content."""
    created: Share | SecureRequest | None = field(default=None, repr=False)
    """The share or request that this process has just created or restored."""
    cause: str = ""
    """Why the last message may not have arrived."""

    def now(self) -> int:
        """Return the time by the database's clock, in microseconds."""
        return self.store.now()

    @property
    def key(self) -> str:
        """The row's key in the file."""
        return self.row.key or ""

    def restore_definition(self) -> BatchDefinition:
        """Return the file's definition with the options of what is out. Raises UsageError."""
        return (
            self.definition if self.options is None else load_options(self.options, self.definition)
        )

    def render(self) -> RenderedRow:
        """Fill in what is out, and what the file says now about reminding and collecting it.

        Raises UsageError.
        """
        definition = self.restore_definition()
        if self.is_gone:  # what the file says now may name columns that the row does not have
            definition = replace(definition, collect=None)  # nothing is collected
            check_columns(definition.options, self.values)
        return render_row(definition, FileRow(self.key, self.values, Place("")))

    def list_arguments(self, *, is_new: bool) -> dict[str, Any]:
        """Return the arguments of the row's options.

        A new link's lifetime is counted by the database's clock.
        """
        arguments = dict(self.render().arguments)
        if not is_new:  # what the file says may be over by now
            return {**arguments, "expires_in": None, "expires_at": None}
        lifetime = get_lifetime(self.restore_definition().options, self.definition.kind)
        return (
            arguments
            if lifetime is None
            else {**arguments, "expires_at": to_datetime(self.now()) + lifetime}
        )

    def name_effect(self, *parts: object) -> str:
        """Return the name of an effect of this generation, such as `1/remind/2/0`."""
        return "/".join(map(str, (self.row.generation, *parts)))

    def name_command(self, verb: str) -> str:
        """Return the command that decides about this row."""
        return name_command(self.batch, self.row, verb)


def name_command(batch: Batch, row: Row, verb: str) -> str:
    """Return the command that decides about a row."""
    return f"sealpipe batch {verb} {quote(batch.name)} {quote(row.key or '')}"


def open_row_session(session: Session, batch: Batch, row: Row) -> Session:
    """Return the session of a row, whose events name it."""
    if not session.policy_hooks:
        return session
    return session.with_origin((("batch", batch.name), ("row", redact_address(row.key or ""))))


def check_columns(options: Options, values: Mapping[str, str]) -> None:
    """Raise UsageError if options name columns of which a row has no cell.

    They would be filled in as nothing.
    """
    params = options.get("param")
    given = {*values, *(pattern.name for pattern in params.patterns)} if params else {*values}
    missing = sorted({name for option in options.values() for name in option.columns} - given)
    if missing:
        raise UsageError(
            (
                "the file no longer has this row, and names columns now that it does not "
                f"have: {', '.join(missing)}"
            ),
            remedy="put the row back into the file with these cells, and run it",
        )


class StepResult(NamedTuple):
    """What a step came to.

    `history` are lines for the row's history; `again_at` is the earliest next step; `generation` is
    the row's, if it has another now.
    """

    event: Event
    progress: Progress
    history: Sequence[Members] = ()
    again_at: int | None = None
    generation: int | None = None


class RefusedError(UsageError):
    """What somebody asked for a row makes no sense now. The row stays as it is."""


class BlockedError(SealpipeError):
    """Only a person can decide what comes next for a row; the remedy is the command."""

    exit_code = 18


def to_microseconds(moment: datetime | None) -> int | None:
    """Return a time in microseconds since 1970."""
    return None if moment is None else round(moment.timestamp() * 1_000_000)


def to_datetime(moment: int) -> datetime:
    """Return a time in microseconds since 1970 as a datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)


_MICROSECOND: Final = timedelta(microseconds=1)


def make_schedule(definition: BatchDefinition) -> Schedule:
    """Return when something is due for the rows of a batch."""
    remind, reissue = definition.remind, definition.reissue
    before = None if remind is None or remind.before_expiry is None else remind.before_expiry
    return Schedule(
        () if remind is None else tuple(each // _MICROSECOND for each in remind.after),
        None if before is None else before // _MICROSECOND,
        watches=definition.kind == "request" or remind is not None or reissue is not None,
        reissues=0 if reissue is None else reissue.times,
    )


def send_messages(work: RowWork, link: Deliverable) -> tuple[str, ...]:
    """Send the remaining messages; return the recipients that may or may not have theirs.

    Raises DeliveryError if a message was certainly not sent: then it is sent by a repetition.
    """
    try:
        deliver(work.session, link)
    except DeliveryError as error:
        items = [] if link.deliveries is None else link.deliveries.items
        repeatable = _find_repeatable(work.session, items)
        unsent = [
            each
            for each, again in zip(items, repeatable, strict=True)
            if again and each.state != "sent"
        ]
        if unsent or not items:
            remedy = "the next run sends what is left"
            raise error.copy_with(remedy=remedy) from error.__cause__
        work.cause = error.message
        return tuple(each.recipient.shown for each in items if each.state == "sending")
    return ()


def _find_repeatable(session: Session, items: Sequence[TrackedDelivery]) -> list[bool]:
    registry = session.registry()
    return [
        each.state != "sending" or confirms_delivery(registry, each.recipient.channel)
        for each in items
    ]


def mark_unclear(work: RowWork, progress: Progress, unclear: Sequence[str]) -> Progress:
    """Return the progress of a row whose messages to these recipients may not have arrived."""
    if not unclear:
        return progress
    cause = f" ({work.cause})" if work.cause else ""
    problem = (
        f"the message to {', '.join(unclear)} may or may not have arrived: it is not sent "
        f"again by itself{cause}"
    )
    return replace(
        progress,
        unclear=(*progress.unclear, *unclear),
        problem=escape_text(problem, MAX_PROBLEM),
        remedy=f"ask whether it arrived; `{work.name_command('remind')}` sends it once more",
        exit_code=BlockedError.exit_code,
    )


def find_delivered(work: RowWork) -> list[str] | None:
    """Return who may not have the link if an earlier process ended the delivery, or None."""
    create = work.store.effects.find(work.row, work.name_effect("create"))
    if create is None or create.state != "done" or not create.content.get("ended"):
        return None
    recipients = create.content["meta"].get("recipients", ())
    effects = [
        work.store.effects.find(work.row, work.name_effect("message", at))
        for at in range(len(recipients))
    ]
    return [
        Recipient(*row).shown
        for row, effect in zip(recipients, effects, strict=True)
        if effect is None or effect.state != "done"
    ]


def finish_delivery(
    work: RowWork, created: Share | SecureRequest | None, event: Event, *, keeps_link: bool = False
) -> StepResult:
    """Send the messages that are left. `created` is None if the outbox has nothing any more.

    With `keeps_link`, the outbox keeps the link, which may be sent again.
    """
    unclear: Sequence[str]
    if created is not None:
        unclear = send_messages(work, created)
        if not keeps_link:
            created.delivered()
    else:
        found = find_delivered(work)
        if found is None:
            raise BlockedError(
                "the database no longer has what was to be delivered",
                remedy=f"run `{work.name_command('reissue')}`",
            )
        unclear = found
    now = work.now()
    progress = replace(work.progress, delivered_at=now, touched_at=now, looked_at=now)
    history = [{"what": "delivered", "unclear": list(unclear)}]
    return StepResult(event, mark_unclear(work, progress, unclear), history)


def expire_undelivered(work: RowWork) -> StepResult | None:
    """Return the end of a row whose link would no longer work; None if it can be delivered."""
    progress = work.progress
    if progress.expires_at is None or work.now() < progress.expires_at:
        return None
    return StepResult(
        Event.EXPIRED, replace(progress, outcome="not delivered"), [{"what": "expired"}]
    )


Steps = Mapping[Any, Callable[[RowWork], StepResult]]
"""A kind's function for each step."""
