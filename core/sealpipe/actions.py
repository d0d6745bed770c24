"""What the descriptions of all actions share, for policies and observers: names, never values.

Each verb describes its own action beside its work; no verb is imported here. No backend is asked.
Also restores an entry's deliveries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sealpipe.parsing import format_optional_time, parse_time
from sealpipe.plugin import OutgoingAction
from sealpipe.plugin.context import LITERAL, UNKNOWN
from sealpipe.reference import Reference, parse
from sealpipe.session import Session
from sealpipe.state.entry import Entry

if TYPE_CHECKING:
    from sealpipe.delivery.recipients import DeliveryPlan, Recipient
    from sealpipe.delivery.send import Deliveries


def describe_ending(session: Session, kind: str, subject: str, short_code: str) -> OutgoingAction:
    """Describe what is about to end.

    `kind` is `expire` or `purge`, `subject` is `share` or `request`.
    """
    return OutgoingAction(
        kind, short_codes=(short_code,), subject=subject, service=session.base_url
    )


def describe_raw(session: Session, kind: str, **known: Any) -> OutgoingAction:
    """Describe a share or request whose body the caller made."""
    return OutgoingAction(
        kind, service=session.base_url, link_address=session.link_base_url, **known
    )


def to_entry_note(plan: OutgoingAction) -> dict[str, Any]:
    """Return the part of a plan that an outbox entry keeps, so that policies can be asked again."""
    ends = format_optional_time(plan.expires_at)
    names = {"labels": plan.labels, "sources": plan.sources, "sinks": plan.sinks}
    return {**names, "expires_at": ends, "views": plan.views}


def describe_entry(session: Session, meta: Mapping[str, Any]) -> OutgoingAction:
    """Describe what an outbox entry finishes.

    Names of channels and sinks are resolved as configured now.
    """
    note = meta.get("overseen") or {"sources": (UNKNOWN,), "sinks": (UNKNOWN,)}
    sinks = [parse(text, "the sink").name for text in meta.get("also_to") or ()]
    ends: datetime | None = parse_time(note["expires_at"]) if note.get("expires_at") else None
    rows = meta.get("recipients", ())
    return OutgoingAction(
        meta["kind"],
        labels=tuple((label, kind) for label, kind in note.get("labels", ())),
        sources=tuple(note["sources"]),
        recipients=tuple(f"{row[1]}:{row[2]}" for row in rows),
        expires_at=ends,
        views=note.get("views", meta.get("views")),
        title=meta.get("title"),
        sinks=tuple(dict.fromkeys([*note["sinks"], *identify_all(session, "sink", sinks)])),
        channels=tuple(session.registry().identify("channel", row[1]) for row in rows),
        service=meta["base_url"],
        link_address=meta["link_base_url"],
        resumed=True,
    )


def describe_new(
    session: Session,
    kind: str,
    inputs: Iterable[object],
    delivery: DeliveryPlan | None,
    title: str | None,
    passcode: object = None,
) -> OutgoingAction:
    """Describe what is about to be created: its sources and channels, before anything is read."""
    codes = () if passcode is None else (passcode,)
    params = () if delivery is None else delivery.params.values()
    channels = () if delivery is None else [each.target.name for each in delivery.targets]
    return OutgoingAction(
        kind,
        sources=identify_sources(session, [*inputs, *codes, *params]),
        title=title,
        channels=identify_all(session, "channel", channels),
        service=session.base_url,
        link_address=session.link_base_url,
    )


def with_recipients(
    session: Session, action: OutgoingAction, recipients: Sequence[Recipient]
) -> OutgoingAction:
    """Return the description with its recipients, now that they are known, and their channels."""
    channels = tuple(session.registry().identify("channel", each.channel) for each in recipients)
    return action._replace(recipients=tuple(each.address for each in recipients), channels=channels)


def identify_sources(session: Session, inputs: Iterable[object]) -> tuple[str, ...]:
    """Identify each source once. An input that is not a reference is a literal."""
    sources = (
        session.registry().identify("source", each.name) if isinstance(each, Reference) else LITERAL
        for each in inputs
    )
    return tuple(dict.fromkeys(sources))


def identify_all(session: Session, kind: str, names: Iterable[str]) -> tuple[str, ...]:
    """Identify each store once; `kind` is `sink` or `channel`.

    Without names, no registry is made.
    """
    identity: Callable[[str, str], str] | None = None
    identities: dict[str, None] = {}
    for name in names:
        identity = identity or session.registry().identify
        identities[identity(kind, name)] = None
    return tuple(identities)


def load_deliveries(meta: Mapping[str, Any], entry: Entry | None = None) -> Deliveries | None:
    """Return the messages in an entry's notes with their states, or None."""
    if not meta.get("recipients"):
        return None
    from sealpipe.delivery.send import restore_deliveries  # most shares have no deliveries

    return restore_deliveries(meta, {} if entry is None else entry.deliveries)
