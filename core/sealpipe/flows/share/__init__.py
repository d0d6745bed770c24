"""The options of a share, checked before anything is fetched or sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from sealpipe.errors import Remedy, UsageError
from sealpipe.reference import FieldSpec, Reference, Target, parse_field
from sealpipe.secret import Secret
from sealpipe.values import NOTIFY_ON, as_duration, parse_name
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from pathlib import Path

    from sealpipe.flows.deliver import DeliveryPlan, Params
    from sealpipe.flows.store import SinkTarget


Custody = Literal["auto", "require", "off"]
_ADD_RECIPIENT: Final = Remedy("add --passcode-to CHANNEL", python='write passcode_to=["email:{to}"]')


@dataclass(frozen=True, repr=False, eq=False)  # neither is used, and generating them would slow every start
class ShareOptions:
    """What to share, and how: the arguments of `Client.share` and the options of `sealpipe share`.

    Checked when it is made, as far as possible without a source, a sink or the service. Raises UsageError.
    """

    fields: Sequence[Field | FieldSpec | str]
    """What to share; a string is a reference, such as `Root=vault:secret/app#root`."""
    _: KW_ONLY
    name: str | None = None
    """The owner's name for it, which also fills `{name}` in `also_to`. The service never gets it."""
    title: str | None = None
    """The title. The service can read it."""
    description: str | None = None
    """The description. The service can read it."""
    expires_in: timedelta | str | None = timedelta(hours=72)
    """How long the link works; None: until its views are used up."""
    expires_at: datetime | None = None
    """When the link expires. Overrides `expires_in`; after validation it replaces both."""
    views: int | None = 1
    """How often the share can be opened; None: no limit."""
    passcode: str | Secret | Reference | None = None
    """The passcode that the recipient must enter, or where it is read."""
    custody: Custody = "auto"
    """Whether the account's owner can read the share: if possible, always (`require`) or never (`off`)."""
    timed_view: int | None = None
    """How long an opened share stays visible, in seconds."""
    notify_on: Sequence[str] | None = None
    """The events that the owner gets an email about; None: as the account is set."""
    organization_id: str | None = None
    """The organisation that the share belongs to."""
    outbox: str | Path | None = None
    """The folder of the outbox, for a call from Python; None: nothing is written to disk."""
    passcode_generate: bool = False
    """Whether to generate a passcode."""
    send: Sequence[Target | str] = ()
    """The channels that deliver the link."""
    passcode_to: Sequence[Target | str] = ()
    """The channels that deliver the passcode."""
    params: Params | None = None
    """The references that give the values of `{NAME}` in channels, by name."""
    message_template: str | None = None
    """The message's text; it contains `{link}`. None: our own."""
    also_to: Sequence[Reference | str] = ()
    """The sinks that store the fields before the share is posted."""

    specs: tuple[Field | FieldSpec, ...] = field(init=False)
    """`fields`, parsed."""
    code: Secret | Reference | None = field(init=False)
    """`passcode`, checked; a reference to a new one if it is to be generated."""
    delivery: DeliveryPlan | None = field(init=False)
    """The recipients of link and passcode; None if there are none."""
    targets: tuple[SinkTarget, ...] = field(init=False, default=())
    """`also_to`, parsed."""

    def __post_init__(self) -> None:
        """Check everything, as far as possible without a source, a sink or the service."""
        if not self.fields:
            raise UsageError(
                "there is nothing to share",
                remedy=Remedy(
                    "name at least one field, such as -f env:DB_PASSWORD",
                    python='name at least one field: ["env:DB_PASSWORD"]',
                ),
            )
        set_checked(self, expires_at=resolve_expiry(self.expires_in, self.expires_at, "the share"))
        if self.name is not None:
            parse_name(self.name)
        for name, number in (("views", self.views), ("timed_view", self.timed_view)):
            if number is not None and number < 1:
                raise UsageError(f"{name} is less than one", remedy="leave it out for no limit")
        if self.custody not in ("auto", "require", "off"):
            raise UsageError(f"custody {self.custody!r} is not one of auto, require, off")
        events = self.notify_on or ()
        if set(events) - set(NOTIFY_ON) or len(set(events)) < len(events):
            raise UsageError("notify_on has an unknown or repeated event", remedy=", ".join(NOTIFY_ON))
        set_checked(self, notify_on=None if self.notify_on is None else tuple(self.notify_on))
        code = self._check_passcode()
        delivery = plan_optional_delivery(
            self.send, self.passcode_to, self.params or (), self.message_template, with_passcode=code is not None
        )
        if delivery is not None and self.views is not None:
            _check_views(self.views, sum(each.content == "link" for each in delivery.targets))
        specs = tuple(parse_field(each) if isinstance(each, str) else each for each in self.fields)
        _check_repeated(specs)
        set_checked(self, passcode=code, code=code, delivery=delivery, specs=specs)
        if self.also_to:
            from sealpipe.flows.store import parse_targets  # most shares have no target

            set_checked(self, targets=tuple(parse_targets(self.also_to, name=self.name)))

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources, sinks and channels that it uses."""
        refs = [each.ref for each in self.specs if isinstance(each, FieldSpec)]
        return list_needs([*refs, self.code], [each.ref for each in self.targets], self.delivery)

    def _check_passcode(self) -> Secret | Reference | None:
        if self.passcode is None and not self.passcode_generate:
            return None
        from sealpipe.flows.passcode import make_generator_reference, parse_passcode  # most shares have no passcode

        passcode = make_generator_reference(self.passcode) if self.passcode_generate else self.passcode
        # The name of a generated value may also be used by a field.
        known = self.passcode_to or (isinstance(passcode, Reference) and passcode.param("name") is not None)
        return parse_passcode(passcode or "", "" if known else _ADD_RECIPIENT)


def _check_repeated(specs: Sequence[Field | FieldSpec]) -> None:
    """Raise UsageError if a reference is given twice under the same label: recipients could not tell them apart."""
    given = [each for each in specs if isinstance(each, FieldSpec)]
    for number, spec in enumerate(given):
        if spec in given[:number]:
            shown = f"{spec.ref.name}:" if spec.ref.name == "text" else str(spec)  # what is typed may be a secret
            raise UsageError(
                f"the field {shown} is given twice",
                remedy=Remedy(
                    "leave one out, or give each its own label: -f LABEL=REF",
                    python='leave one out, or give each its own label: "LABEL=REF"',
                ),
            )


def _check_views(views: int, recipients: int) -> None:
    """Raise UsageError if there are fewer views than recipients."""
    if views < recipients:
        count = "once" if views == 1 else f"{views} times"
        raise UsageError(
            f"the link goes to {recipients} recipients, but can be opened only {count}",
            remedy=Remedy(
                f"allow --views {recipients} (in Python views={recipients}), or make a share for each of them",
                python=f"allow views={recipients}, or make a share for each of them",
            ),
        )


Need = tuple[str, str]
"""The kind and the name of a store: `source`, `sink` or `channel`."""


def list_needs(
    sources: Iterable[object], sinks: Iterable[Reference], delivery: DeliveryPlan | None
) -> tuple[Need, ...]:
    """Return the stores that references and a delivery use, each once; what is no reference needs none."""
    params = [] if delivery is None else delivery.params.values()
    channels = [] if delivery is None else [each.target.name for each in delivery.targets]
    needs = [
        *(("source", each.name) for each in (*sources, *params) if isinstance(each, Reference)),
        *(("sink", each.name) for each in sinks),
        *(("channel", name) for name in channels),
    ]
    return tuple(dict.fromkeys(needs))


def set_checked(options: object, **values: object) -> None:
    """Set fields of frozen options to their checked values."""
    for name, value in values.items():
        object.__setattr__(options, name, value)


def resolve_expiry(expires_in: timedelta | str | None, expires_at: datetime | None, option: str) -> datetime | None:
    """Return the expiry: `expires_at`, else now plus `expires_in`; None for never. Raises UsageError."""
    now = datetime.now(UTC)
    if expires_at is None and expires_in is not None:
        try:
            expires_at = now + as_duration(expires_in)
        except OverflowError:
            raise UsageError(f"{option} would expire after the year 9999", remedy="give a shorter time") from None
    if expires_at is not None and (expires_at.tzinfo is None or expires_at.utcoffset() is None):
        raise UsageError("the expiry has no time zone", remedy="give the datetime a tzinfo, such as datetime.UTC")
    if expires_at is not None and expires_at <= now:
        raise UsageError("the expiry is in the past", remedy="give an expiry in the future")
    return expires_at


def plan_optional_delivery(*arguments: Any, with_passcode: bool) -> DeliveryPlan | None:
    """Plan a delivery, with the arguments of `plan_delivery`; None if there is no recipient. Raises UsageError."""
    if not any(arguments[:3]) and arguments[3] is None:
        return None
    from sealpipe.flows.deliver import plan_delivery  # most shares have no recipient

    return plan_delivery(*arguments, with_passcode=with_passcode)
