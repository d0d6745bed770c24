"""Asking policies before a share leaves, and telling observers what became of it. Never a value, never a fragment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from sealpipe.errors import PluginError, SealpipeError
from sealpipe.flows.planning import SharePlan
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow
from sealpipe.plugin import Outgoing
from sealpipe.reference import FieldSpec
from sealpipe.times import format_time

if TYPE_CHECKING:
    from sealpipe.flows.collecting.result import Collected
    from sealpipe.registry import Registry


class Made(Protocol):
    """What was made: a share."""

    short_code: str
    outcome: Literal["created", "replayed"]
    warnings: tuple[str, ...]


T = TypeVar("T", bound=Made)


def outgoing(plan: SharePlan, labels: Sequence[tuple[str, str]], recipients: Sequence[str]) -> Outgoing:
    """What a policy sees of a share: `recipients` are its channels' targets, as `channel:to`."""
    return Outgoing(
        "share",
        tuple(labels),
        tuple(dict.fromkeys(spec.ref.name for spec in plan.fields if isinstance(spec, FieldSpec))),
        tuple(recipients),
        plan.expires_at,
        plan.views,
        plan.title,
    )


def check(session: Session, plan: Outgoing) -> Flow[None]:
    """Ask every policy, and tell every observer that it is about to leave. What raises here, nothing was sent."""
    if session.overseers:
        yield Do(partial(_check, session, plan))


def watched(session: Session, plan: Outgoing, work: Flow[T]) -> Flow[T]:
    """Do the work, and tell every observer how it ended.

    What was to be written down before it is; an observer that cannot be told of the end is named on the result's
    warnings, for the share is there all the same.
    """
    if not session.overseers:
        return (yield from work)
    try:
        made = yield from work
    except SealpipeError as error:
        with suppress(PluginError):  # why it failed matters more
            yield Do(partial(_tell, session, plan, type(error).__name__, {}))
        raise
    try:
        yield Do(partial(_tell, session, plan, made.outcome, {"short_code": made.short_code}))
    except PluginError as error:
        made.warnings += (error.message,)
    return made


def delivery(session: Session, short_code: str, recipient: str, what: str, outcome: str) -> Flow[tuple[str, ...]]:
    """Tell every observer what became of one message; a warning where one cannot be told."""
    if not session.overseers:
        return ()
    event = {"event": "delivery", "short_code": short_code, "recipient": recipient, "what": what, "outcome": outcome}
    try:
        yield Do(partial(_send, session, event))
    except PluginError as error:
        return (error.message,)
    return ()


def collected(session: Session, result: Collected) -> Flow[tuple[str, ...]]:
    """Tell every observer what a request has given, and where that went; a warning where one cannot be told."""
    if not session.overseers:
        return ()
    problem = result.problem()
    event = {
        "event": "collect",
        "short_code": result.short_code,
        "outcome": result.status if problem is None else type(problem).__name__,
        "count": result.count,
        "unreadable": len(result.unreadable),
        "stored": [f"{each.target}#{','.join(each.keys)}" for each in result.stored],
        "ended": result.ended is not None,
    }
    try:
        yield Do(partial(_send, session, event))
    except PluginError as error:
        return (error.message,)
    return ()


def of_entry(meta: Mapping[str, Any]) -> Outgoing:
    """What observers are told of what an outbox entry finishes: its fields were told when it was made."""
    recipients = tuple(f"{row[1]}:{row[2]}" for row in meta.get("recipients", ()))
    return Outgoing(meta["kind"], (), (), recipients, None, meta.get("views"), meta.get("title"))


def _send(session: Session, event: Mapping[str, Any]) -> None:
    registry = session.registry()
    registry.tell(session.overseers, {**_who(registry), **event})


def _check(session: Session, plan: Outgoing) -> None:
    session.registry().check_outgoing(session.overseers, plan)
    _tell(session, plan, "sending", {})


def _tell(session: Session, plan: Outgoing, outcome: str, members: Mapping[str, object]) -> None:
    registry = session.registry()
    registry.tell(session.overseers, {**_who(registry), **_what(plan), "outcome": outcome, **members})


def _who(registry: Registry) -> dict[str, Any]:
    ci = registry.ci()
    run = None if ci is None else ci.run()
    return {
        "schema": 1,
        "time": format_time(datetime.now(UTC)),
        "ci": None if run is None else run.ci,
        "run": None if run is None else run.id,
        "actor": None if run is None else run.actor,
    }


def _what(plan: Outgoing) -> dict[str, Any]:
    return {
        "event": plan.kind,
        "labels": [label for label, _ in plan.labels],
        "sources": list(plan.sources),
        "recipients": list(plan.recipients),
        "expires_at": None if plan.expires_at is None else format_time(plan.expires_at),
        "views": plan.views,
        "title": plan.title,
    }
