"""Plan a share, before anything is fetched or sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from sealpipe.errors import Remedy, UsageError
from sealpipe.parsing import NOTIFY_ON, as_duration, parse_name
from sealpipe.reference import FieldSpec, Reference, Target, parse_field
from sealpipe.requirements import Need
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from sealpipe.delivery.recipients import DeliveryPlan, Params
    from sealpipe.sinks.targets import SinkTarget


Custody = Literal["auto", "require", "off"]
_ADD_RECIPIENT: Final = Remedy(
    "add --passcode-to CHANNEL", python='write passcode_to=["email:{to}"]'
)


@dataclass(
    frozen=True, repr=False, eq=False
)  # neither is used, and generating them would slow every start
class ShareJob:
    """What to share, and how: checked and parsed. `plan_share` makes it."""

    fields: tuple[Field | FieldSpec, ...]
    name: str | None
    """The owner's name for it. The service never gets it."""
    title: str | None
    description: str | None
    expires_at: datetime | None
    """When it expires; None: never."""
    views: int | None
    """How often the share can be opened; None: no limit."""
    passcode: Secret | Reference | None
    """The passcode, or where it is read; a reference to a new one if it is to be generated."""
    custody: Custody
    timed_view: int | None
    """In seconds."""
    notify_on: tuple[str, ...] | None
    organization_id: str | None
    delivery: DeliveryPlan | None
    """The recipients of link and passcode; None if there are none."""
    message_template: str | None
    targets: tuple[SinkTarget, ...]
    """The sinks that store the fields before the share is posted."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources, sinks and channels that it uses."""
        refs = [each.ref for each in self.fields if isinstance(each, FieldSpec)]
        return list_needs(
            [*refs, self.passcode], [each.ref for each in self.targets], self.delivery
        )


def plan_share(
    fields: Sequence[Field | FieldSpec | str],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    expires_in: timedelta | str | None = timedelta(hours=72),
    expires_at: datetime | None = None,
    views: int | None = 1,
    passcode: str | Secret | Reference | None = None,
    custody: Custody = "auto",
    timed_view: int | None = None,
    notify_on: Sequence[str] | None = None,
    organization_id: str | None = None,
    passcode_generate: bool = False,
    send: Sequence[Target | str] = (),
    passcode_to: Sequence[Target | str] = (),
    params: Params | None = None,
    message_template: str | None = None,
    also_to: Sequence[Reference | str] = (),
) -> ShareJob:
    """Plan a share, with the arguments of `Client.share`.

    Checks what they say together, as far as possible without a source, a sink or the service; each
    by itself was checked where it came in. Raises UsageError.
    """
    if not fields:
        raise UsageError(
            "there is nothing to share",
            remedy=Remedy(
                "name at least one field, such as env:DB_PASSWORD",
                python='name at least one field: ["env:DB_PASSWORD"]',
            ),
        )
    ends = resolve_expiry(expires_in, expires_at, "the share")
    if name is not None:
        parse_name(name)
    if notify_on is not None and len(set(notify_on)) < len(notify_on):
        raise UsageError("notify_on has an unknown or repeated event", remedy=", ".join(NOTIFY_ON))
    code = _parse_passcode(
        passcode, has_recipient=bool(passcode_to), is_generated=passcode_generate
    )
    delivery = plan_optional_delivery(
        send, passcode_to, params or (), message_template, with_passcode=code is not None
    )
    if delivery is not None and views is not None:
        _check_views(views, sum(each.content == "link" for each in delivery.targets))
    specs = tuple(parse_field(each) if isinstance(each, str) else each for each in fields)
    _check_repeated(specs)
    targets: tuple[SinkTarget, ...] = ()
    if also_to:
        from sealpipe.sinks.targets import parse_targets  # most shares have no target

        targets = tuple(parse_targets(also_to, name=name))
    return ShareJob(
        fields=specs,
        name=name,
        title=title,
        description=description,
        expires_at=ends,
        views=views,
        passcode=code,
        custody=custody,
        timed_view=timed_view,
        notify_on=None if notify_on is None else tuple(notify_on),
        organization_id=organization_id,
        delivery=delivery,
        message_template=message_template,
        targets=targets,
    )


def _parse_passcode(
    passcode: str | Secret | Reference | None, *, has_recipient: bool, is_generated: bool
) -> Secret | Reference | None:
    if passcode is None and not is_generated:
        return None
    # Most shares have no passcode.
    from sealpipe.sources.passcode import (
        make_generator_reference,
        parse_passcode,
    )

    chosen = make_generator_reference(passcode) if is_generated else passcode
    # The name of a generated value may also be used by a field.
    is_known = has_recipient or (isinstance(chosen, Reference) and chosen.param("name") is not None)
    return parse_passcode(chosen or "", "" if is_known else _ADD_RECIPIENT)


def _check_repeated(specs: Sequence[Field | FieldSpec]) -> None:
    """Raise UsageError if a reference is given twice under the same label.

    Recipients could not tell them apart.
    """
    given = [each for each in specs if isinstance(each, FieldSpec)]
    for number, spec in enumerate(given):
        if spec in given[:number]:
            # What is typed may be a secret.
            shown = f"{spec.ref.name}:" if spec.ref.name == "text" else str(spec)
            raise UsageError(
                f"the field {shown} is given twice",
                remedy=Remedy(
                    "leave one out, or give each its own label: LABEL=REF",
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
                (
                    f"allow --views {recipients} (in Python views={recipients}), or make a "
                    "share for each of them"
                ),
                python=f"allow views={recipients}, or make a share for each of them",
            ),
        )


def list_needs(
    sources: Iterable[object], sinks: Iterable[Reference], delivery: DeliveryPlan | None
) -> tuple[Need, ...]:
    """Return the stores that references and a delivery use, each once.

    What is no reference needs none.
    """
    params = [] if delivery is None else delivery.params.values()
    channels = [] if delivery is None else [each.target.name for each in delivery.targets]
    needs = [
        *(("source", each.name) for each in (*sources, *params) if isinstance(each, Reference)),
        *(("sink", each.name) for each in sinks),
        *(("channel", name) for name in channels),
    ]
    return tuple(dict.fromkeys(needs))


def resolve_expiry(
    expires_in: timedelta | str | None, expires_at: datetime | None, option: str
) -> datetime | None:
    """Return the expiry: `expires_at`, else now plus `expires_in`; None for never.

    Raises UsageError.
    """
    now = datetime.now(UTC)
    if expires_at is None and expires_in is not None:
        try:
            expires_at = now + as_duration(expires_in)
        except OverflowError:
            raise UsageError(
                f"{option} would expire after the year 9999", remedy="give a shorter time"
            ) from None
    if expires_at is not None and (expires_at.tzinfo is None or expires_at.utcoffset() is None):
        raise UsageError(
            "the expiry has no time zone", remedy="give the datetime a tzinfo, such as datetime.UTC"
        )
    if expires_at is not None and expires_at <= now:
        raise UsageError("the expiry is in the past", remedy="give an expiry in the future")
    return expires_at


def plan_optional_delivery(*arguments: Any, with_passcode: bool) -> DeliveryPlan | None:
    """Plan a delivery, with the arguments of `plan_delivery`; None if there is no recipient.

    Raises UsageError.
    """
    if not any(arguments[:3]) and arguments[3] is None:
        return None
    from sealpipe.delivery.recipients import plan_delivery  # most shares have no recipient

    return plan_delivery(*arguments, with_passcode=with_passcode)
