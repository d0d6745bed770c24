"""Checks policies and notifies observers before anything is sent, stored or ended.

This is the one gate.

Work that changes something at the service is a function of the session that `run_under_policy`
hands out, which may send what `OPERATIONS` lists for the action that policies have allowed.
`Session.send` refuses every other change. So a verb that forgets to ask, or does more than it asked
for, sends nothing of it if there are policies or observers. Reads pass. Each verb describes what
they see: never a value, never a fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

from sealpipe.budget import Budget, wait
from sealpipe.custody_gate import REDACTED
from sealpipe.custody_gate import credential_leak_error as refused_by_gate
from sealpipe.errors import PluginError, PolicyError, SealpipeError
from sealpipe.parsing import format_optional_time, format_time, redact_address
from sealpipe.plugin import OutgoingAction

if TYPE_CHECKING:
    from sealpipe.custody_gate import CustodyGate
    from sealpipe.registry import Registry
    from sealpipe.registry.stores import PolicyHook

T = TypeVar("T")

EARLY_POLICIES = ("policy",)
"""Policies that are also asked before sources are read: a source that they do not list is not
read.
"""

# Without the custody that it requires, it is expired again.
OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "share": (
        "create the share",
        "expire the share",
    ),
    "request": ("create the request",),
    "collect": (),  # expiring afterwards is an action of its own
    "tool": ("call the tool",),
    "expire share": ("expire the share",),
    "expire request": ("expire the request",),
    "purge request": ("expire the request", "purge the request"),
    "unseal": (),
    "batch": (),
    "run": (),
    "read": (),
    "copy": (),
}
"""The names of the operations that each action may send besides reads, by its kind and its subject
(if it has one).
"""


class PolicyContext(Protocol):
    """The hooks of a session: its policies and observers, and its registry."""

    @property
    def policy_hooks(self) -> tuple[PolicyHook, ...]:
        """Policies and observers."""

    @property
    def registry(self) -> Callable[[], Registry]:
        """Get the session's registry."""

    @property
    def gate(self) -> CustodyGate:
        """The check for the credential in everything that they would see."""

    @property
    def origin(self) -> tuple[tuple[str, str], ...]:
        """What every event is part of, as names and values."""

    def clear(self, operations: Collection[str]) -> Self:
        """Return it for work that policies have allowed, and that may send these operations."""


AnyContext = TypeVar("AnyContext", bound=PolicyContext)


class LocalContext(NamedTuple):
    """The hooks for work without a session, which calls no service."""

    policy_hooks: tuple[PolicyHook, ...]
    registry: Callable[[], Registry]
    gate: CustodyGate
    origin: tuple[tuple[str, str], ...] = ()

    def clear(self, operations: Collection[str]) -> LocalContext:  # noqa: ARG002
        """Return it: it sends nothing."""
        return self

    def start_budget(self) -> Budget:
        """Start the time and tries of one call."""
        return Budget(self.registry().deadline)

    def wait(self, seconds: float) -> None:
        """Wait, while the caller may cancel. Raises CancelledCallError."""
        wait(seconds)


def check_policies(session: PolicyContext, describe: Callable[[], OutgoingAction]) -> None:
    """Ask every policy, if there are any. Observers are notified of a refusal only.

    `describe` returns the plan. Raises PolicyError, PluginError, and UsageError if the plan
    contains the credential: then nothing has happened.
    """
    if session.policy_hooks:
        _check(session, describe())


def run_under_policy(
    session: AnyContext,
    plan: OutgoingAction,
    work: Callable[[AnyContext], T],
    describe: Callable[[T], Mapping[str, object] | None] = lambda _: {"outcome": "done"},
) -> T:
    """Ask every policy, notify observers, do the work, and report the outcome of `describe`.

    The work gets a session that may send the operations of this action, and no others that
    `session` may send. If `describe` returns None, the work has reported itself. Each event is
    recorded before its step. If an observer fails at the end, the result's `warnings` (if it has
    any) name it: completed work stays completed.
    """
    if not session.policy_hooks:
        return work(session)
    _begin(session, plan)
    try:
        result = work(session.clear(_list_operations(plan)))
    except SealpipeError as error:
        with suppress(PluginError):  # the first error matters more
            _report(session, plan, {"outcome": type(error).__name__})
        raise
    outcome = describe(result)
    if outcome is None:
        return result
    try:
        _report(session, plan, outcome)
    except PluginError as error:
        with suppress(AttributeError):  # a result without warnings: the event before it is recorded
            result.warnings += (error.message,)  # type: ignore[attr-defined]
    return result


def report_delivery(
    session: PolicyContext, short_code: str, recipient: str, what: str, outcome: str
) -> tuple[str, ...]:
    """Notify every observer of the outcome of one message.

    Returns a warning for an observer that fails.
    """
    event = {
        "event": "delivery",
        "short_code": short_code,
        "recipient": recipient,
        "what": what,
        "outcome": outcome,
    }
    return notify_observers(session, event)


def notify_observers(session: PolicyContext, event: Mapping[str, Any]) -> tuple[str, ...]:
    """Notify every observer of an event. Returns a warning for an observer that fails."""
    if not session.policy_hooks:
        return ()
    try:
        _send(session, event)
    except PluginError as error:
        return (error.message,)
    return ()


def report_refusal(session: PolicyContext, event: str, error: SealpipeError) -> None:
    """Notify every observer of a refusal that came before there was a plan."""
    with suppress(PluginError):  # the refusal matters more
        _send(session, {"event": event, "outcome": "refused", "reason": error.message})


def _check(session: PolicyContext, plan: OutgoingAction) -> None:
    # A redacted address could hide a secret from this check, so it gets the original.
    description = {**_describe_plan(plan), "recipients": list(plan.recipients)}
    if _redact(session.gate, description) != description:
        raise refused_by_gate(f"what policies and the audit see of the {plan.kind}")
    registry = session.registry()
    hooks = [each for each in session.policy_hooks if plan.complete or each.name in EARLY_POLICIES]
    try:
        registry.check_outgoing(hooks, plan)
    except (PolicyError, PluginError) as error:
        with suppress(PluginError):
            _report(session, plan, {"outcome": "refused", "reason": error.message})
        raise


def _begin(session: PolicyContext, plan: OutgoingAction) -> None:
    _check(session, plan)
    _report(session, plan, {"outcome": "sending" if plan.kind in _CREATIONS else "begun"})


def _list_operations(plan: OutgoingAction) -> tuple[str, ...]:
    return OPERATIONS[f"{plan.kind} {plan.subject}".rstrip()]


def _report(session: PolicyContext, plan: OutgoingAction, members: Mapping[str, object]) -> None:
    _send(session, {**_describe_plan(plan), **members})


def _send(session: PolicyContext, event: Mapping[str, Any]) -> None:
    registry, told = session.registry(), {**event, **dict(session.origin)}
    registry.notify_observers(
        session.policy_hooks, {**_describe_run(registry), **_redact(session.gate, told)}
    )


def _redact(gate: CustodyGate, event: Mapping[str, Any]) -> dict[str, Any]:
    """Redact each text of the event that contains the credential: an audit log must not hold it."""

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            return REDACTED.decode() if gate.holds(value.encode(errors="surrogatepass")) else value
        return [redact(each) for each in value] if isinstance(value, list | tuple) else value

    return {name: redact(value) for name, value in event.items()}


def _describe_run(registry: Registry) -> dict[str, Any]:
    from sealpipe.registry.safe_calls import call_plugin  # only where there is an observer

    ci = registry.ci()
    run = None if ci is None else call_plugin("the CI", ci.run)
    return {
        "schema": 1,
        "time": format_time(datetime.now(UTC)),
        "ci": None if run is None else run.ci,
        "run": None if run is None else run.id,
        "run_url": None if run is None else run.url,
        "actor": None if run is None else run.actor,
    }


_CREATIONS = ("share", "request")


def _describe_plan(plan: OutgoingAction) -> dict[str, Any]:
    """Return a plan as the members of an event.

    All members for a creation, otherwise only those that are set.
    """
    members = {
        "labels": [label for label, _ in plan.labels],
        "sources": list(plan.sources),
        "sinks": list(plan.sinks),
        "recipients": [redact_address(each) for each in plan.recipients],
        "channels": list(plan.channels),
        "expires_at": format_optional_time(plan.expires_at),
        "views": plan.views,
        "title": plan.title,
        "tools": list(plan.tools),
        "subject": plan.subject,
        "short_codes": list(plan.short_codes),
        "service": plan.service,
        "link_address": plan.link_address,
        "resumed": plan.resumed,
        "check": plan.check,
    }
    required = _ALWAYS_REPORTED if plan.kind in _CREATIONS else ()
    return {
        "event": plan.kind,
        **{name: value for name, value in members.items() if value or name in required},
    }


_ALWAYS_REPORTED: Sequence[str] = (
    "labels",
    "sources",
    "recipients",
    "expires_at",
    "views",
    "title",
)
