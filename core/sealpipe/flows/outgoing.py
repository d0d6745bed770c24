"""Describes an action for policies and observers: names, never values. Restores an entry's deliveries.

No backend is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sealpipe.plugin import OutgoingAction
from sealpipe.plugin.context import CALLER, LITERAL, UNKNOWN
from sealpipe.reference import FieldSpec, Reference, parse
from sealpipe.values import format_time, parse_time

if TYPE_CHECKING:
    from datetime import datetime

    from sealpipe.flows.collect.options import CollectOptions
    from sealpipe.flows.deliver import DeliveryPlan, Recipient
    from sealpipe.flows.deliver.send import Deliveries
    from sealpipe.flows.request import RequestOptions
    from sealpipe.flows.session import Session
    from sealpipe.flows.share import ShareOptions
    from sealpipe.flows.share.seal import SealedShare
    from sealpipe.state.entry import Entry


def describe_share(session: Session, options: ShareOptions, sealed: SealedShare | None = None) -> OutgoingAction:
    """Describe a share. Without `sealed` its sources are not read yet, so labels, recipients and expiry are unknown."""
    inputs = [each.ref if isinstance(each, FieldSpec) else None for each in options.specs]
    action = _describe_new(session, "share", [*inputs, *_list_passcode(options.code)], options.delivery, options.title)
    sinks = _identify_all(session, "sink", (target.ref.name for target in options.targets))
    action = action._replace(sinks=sinks, views=options.views)
    if sealed is None:
        return action._replace(complete=False)
    return _with_recipients(session, action, sealed.recipients)._replace(
        labels=sealed.labels, expires_at=sealed.expires_at
    )


def describe_request(
    session: Session, options: RequestOptions, recipients: Sequence[Recipient] | None = None
) -> OutgoingAction:
    """Describe a request; without `recipients`, before anything is read."""
    action = _describe_new(session, "request", _list_passcode(options.code), options.delivery, options.heading)
    seed = () if options.seed_target is None else (options.seed_target.ref.name,)
    action = action._replace(sinks=_identify_all(session, "sink", seed), views=options.max_submissions)
    if recipients is None:
        return action._replace(complete=False)
    labels = tuple((each.text, each.type) for each in options.form)
    return _with_recipients(session, action, recipients)._replace(labels=labels, expires_at=options.expires_at)


def describe_reminder(
    session: Session,
    short_code: str,
    title: str | None,
    link_base_url: str,
    delivery: DeliveryPlan,
    recipients: Sequence[Recipient] | None = None,
    labels: tuple[tuple[str, str], ...] = (),
    expires_at: datetime | None = None,
) -> OutgoingAction:
    """Describe a request whose link is sent once more; without `recipients`, before anything is read."""
    action = _describe_new(session, "request", (), delivery, title)
    action = action._replace(short_codes=(short_code,), link_address=link_base_url, resumed=True)
    if recipients is None:
        return action._replace(complete=False)
    return _with_recipients(session, action, recipients)._replace(labels=labels, expires_at=expires_at)


def describe_collect(session: Session, options: CollectOptions) -> OutgoingAction:
    """Describe a collection: where the key is read and where values are written. The caller counts as a sink."""
    keys: list[object] = [] if options.key == "credential" else [options.key]
    if options.key == "credential":
        receipts = [job.receipt for job in options.jobs if job.receipt is not None and job.receipt.key == "new"]
        keys += [receipt.seed for receipt in receipts if receipt.seed is not None]
    refs = [parse(key, "the key") if isinstance(key, str) else key for key in keys]
    names = [target.ref.name for job in options.jobs for target, _ in job.mappings]
    sinks = _identify_all(session, "sink", [*names, *(["dir"] if options.folder is not None else [])])
    return OutgoingAction(
        "collect",
        sources=_identify_sources(session, refs),
        sinks=sinks or (CALLER,),
        short_codes=tuple(job.short_code for job in options.jobs),
        service=session.base_url,
        check=options.check or "",
    )


def describe_tool_call(session: Session, name: str, arguments: Iterable[Reference | None]) -> OutgoingAction:
    """Describe a call of a tool; an argument that is not a reference is a literal."""
    return OutgoingAction(
        "tool", sources=_identify_sources(session, arguments), tools=(name,), service=session.base_url
    )


def describe_ending(session: Session, kind: str, subject: str, short_code: str) -> OutgoingAction:
    """Describe what is about to end: `kind` is `expire` or `purge`, `subject` is `share` or `request`."""
    return OutgoingAction(kind, short_codes=(short_code,), subject=subject, service=session.base_url)


def describe_raw(session: Session, kind: str, **known: Any) -> OutgoingAction:
    """Describe a share or request whose body the caller made."""
    return OutgoingAction(kind, service=session.base_url, link_address=session.link_base_url, **known)


def to_entry_note(plan: OutgoingAction) -> dict[str, Any]:
    """Return the part of a plan that an outbox entry keeps, so that policies can be asked again."""
    ends = None if plan.expires_at is None else format_time(plan.expires_at)
    names = {"labels": plan.labels, "sources": plan.sources, "sinks": plan.sinks}
    return {**names, "expires_at": ends, "views": plan.views}


def describe_entry(session: Session, meta: Mapping[str, Any]) -> OutgoingAction:
    """Describe what an outbox entry finishes. Names of channels and sinks are resolved as configured now."""
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
        sinks=tuple(dict.fromkeys([*note["sinks"], *_identify_all(session, "sink", sinks)])),
        channels=tuple(session.registry().identify("channel", row[1]) for row in rows),
        service=meta["base_url"],
        link_address=meta["link_base_url"],
        resumed=True,
    )


def _describe_new(
    session: Session, kind: str, inputs: Iterable[object], delivery: DeliveryPlan | None, title: str | None
) -> OutgoingAction:
    params = () if delivery is None else delivery.params.values()
    channels = () if delivery is None else [each.target.name for each in delivery.targets]
    return OutgoingAction(
        kind,
        sources=_identify_sources(session, [*inputs, *params]),
        title=title,
        channels=_identify_all(session, "channel", channels),
        service=session.base_url,
        link_address=session.link_base_url,
    )


def _with_recipients(session: Session, action: OutgoingAction, recipients: Sequence[Recipient]) -> OutgoingAction:
    channels = tuple(session.registry().identify("channel", each.channel) for each in recipients)
    return action._replace(recipients=tuple(each.address for each in recipients), channels=channels)


def _list_passcode(passcode: object) -> list[object]:
    return [] if passcode is None else [passcode]


def _identify_sources(session: Session, inputs: Iterable[object]) -> tuple[str, ...]:
    """Identify each source once. An input that is not a reference is a literal."""
    sources = (
        session.registry().identify("source", each.name) if isinstance(each, Reference) else LITERAL for each in inputs
    )
    return tuple(dict.fromkeys(sources))


def _identify_all(session: Session, kind: str, names: Iterable[str]) -> tuple[str, ...]:
    identity: Callable[[str, str], str] | None = None
    identities: dict[str, None] = {}
    for name in names:
        identity = identity or session.registry().identify
        identities[identity(kind, name)] = None
    return tuple(identities)


def load_deliveries(meta: Mapping[str, Any], entry: Entry | None = None) -> Deliveries | None:
    """Return the messages recorded in an entry's notes, with their states; None if there are none."""
    if not meta.get("recipients"):
        return None
    from sealpipe.flows.deliver.send import restore_deliveries  # most shares have no deliveries

    return restore_deliveries(meta, {} if entry is None else entry.deliveries)
