"""What to share, and how, checked before anything is fetched or sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from sealpipe.errors import UsageError
from sealpipe.reference import FieldSpec, Reference, Target, parse_field
from sealpipe.secret import Secret
from sealpipe.setting_values import NOTIFY_ON
from sealpipe.times import as_duration
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from pathlib import Path

    from sealpipe.flows.deliver.recipients import DeliveryPlan, Params
    from sealpipe.flows.store.targets import SinkTarget

Custody = Literal["auto", "require", "off"]


@dataclass(repr=False, eq=False)  # neither is asked for, and making them would cost every start
class ShareOptions:
    """What to share, and how: the arguments of `Client.share` and the options of `sealpipe share`, one line each.

    A string among `fields` is a reference, such as `Root=vault:secret/app#root`. `expires_at` stands before
    `expires_in`; None for both: no end. `views` None: no limit. Link and passcode go through the channels of `send` and
    `passcode_to`, whose places `params` fill. Raises UsageError; nothing is read, written or sent.
    """

    fields: Sequence[Field | FieldSpec | str]
    _: KW_ONLY
    title: str | None = None
    description: str | None = None
    expires_in: timedelta | str | None = timedelta(hours=72)
    expires_at: datetime | None = None
    views: int | None = 1
    passcode: str | Secret | Reference | None = None
    custody: Custody = "auto"
    timed_view: int | None = None
    notify_on: Sequence[str] | None = None
    organization_id: str | None = None
    outbox: str | Path | None = None
    passcode_generate: bool = False
    send: Sequence[Target | str] = ()
    passcode_to: Sequence[Target | str] = ()
    params: Params | None = None
    message_template: str | None = None
    also_to: Sequence[Reference | str] = ()

    specs: tuple[Field | FieldSpec, ...] = field(init=False)
    """`fields`, parsed."""
    code: Secret | Reference | None = field(init=False)
    """`passcode`, checked; a reference to a new one where it is to be generated."""
    delivery: DeliveryPlan | None = field(init=False)
    """Who gets what; None for nobody."""
    targets: tuple[SinkTarget, ...] = field(init=False, default=())
    """`also_to`, parsed: where fields are stored before the share is posted."""

    def __post_init__(self) -> None:
        """Check everything, as far as that goes without a source, a sink or the service."""
        if not self.fields:
            raise UsageError("there is nothing to share", remedy="name at least one field, such as -f env:DB_PASSWORD")
        self.expires_at = resolve_expiry(self.expires_in, self.expires_at, "the share")
        for name, number in (("views", self.views), ("timed_view", self.timed_view)):
            if number is not None and number < 1:
                raise UsageError(f"{name} is less than one", remedy="leave it out for no limit")
        if self.custody not in ("auto", "require", "off"):
            raise UsageError(f"custody {self.custody!r} is not one of auto, require, off")
        events = self.notify_on or ()
        if set(events) - set(NOTIFY_ON) or len(set(events)) < len(events):
            raise UsageError("notify_on names an event that is none, or one twice", remedy=", ".join(NOTIFY_ON))
        self.notify_on = None if self.notify_on is None else tuple(self.notify_on)
        self.passcode = self.code = self._check_passcode()
        self.delivery = plan_delivery_of(
            self.send, self.passcode_to, self.params or (), self.message_template, with_passcode=self.code is not None
        )
        if self.delivery is not None and self.views is not None:
            _check_views(self.views, sum(each.what == "link" for each in self.delivery.wanted))
        self.specs = tuple(parse_field(each) if isinstance(each, str) else each for each in self.fields)
        if self.also_to:
            from sealpipe.flows.store.targets import parse_targets  # most shares are stored nowhere

            self.targets = tuple(parse_targets(self.also_to))

    def _check_passcode(self) -> Secret | Reference | None:
        if self.passcode is None and not self.passcode_generate:
            return None
        from sealpipe.flows.passcode import generate_passcode, parse_passcode  # most shares have none

        passcode = generate_passcode(self.passcode) if self.passcode_generate else self.passcode
        # With a name, a field may have the same value.
        known = self.passcode_to or (isinstance(passcode, Reference) and passcode.param("name") is not None)
        return parse_passcode(passcode or "", "" if known else "add --passcode-to CHANNEL")


def _check_views(views: int, recipients: int) -> None:
    """UsageError where the last of those who get the link would find it used up."""
    if views < recipients:
        times = "once" if views == 1 else f"{views} times"
        raise UsageError(
            f"the link goes to {recipients} recipients, and opens {times}: the last would find it used up",
            remedy=f"allow --views {recipients} (in Python views={recipients}), or make a share for each of them",
        )


def resolve_expiry(expires_in: timedelta | str | None, expires_at: datetime | None, what: str) -> datetime | None:
    """When it is over: `expires_at` stands before `expires_in`; None for never. Raises UsageError."""
    now = datetime.now(UTC)
    if expires_at is None and expires_in is not None:
        try:
            expires_at = now + as_duration(expires_in)
        except OverflowError:
            raise UsageError(f"{what} would expire after the year 9999", remedy="give a shorter time") from None
    if expires_at is not None and (expires_at.tzinfo is None or expires_at.utcoffset() is None):
        raise UsageError("the expiry has no time zone", remedy="give the datetime a tzinfo, such as datetime.UTC")
    if expires_at is not None and expires_at <= now:
        raise UsageError("the expiry is in the past", remedy="give an expiry in the future")
    return expires_at


def plan_delivery_of(*asked: Any, with_passcode: bool) -> DeliveryPlan | None:
    """Whom it is sent to: `plan_delivery`'s arguments. None for nobody. Raises UsageError."""
    if not any(asked[:3]) and asked[3] is None:
        return None
    from sealpipe.flows.deliver.recipients import plan_delivery  # most shares are sent nowhere

    return plan_delivery(*asked, with_passcode=with_passcode)
