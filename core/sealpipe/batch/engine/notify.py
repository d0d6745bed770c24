"""Tells the team what a run changed: numbers, and names of rows only where the file says so. Sent at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from sealpipe.batch.engine.advance import Change, Engine
from sealpipe.batch.engine.run import RunResult
from sealpipe.errors import SealpipeError
from sealpipe.flows import Do, Flow, policy
from sealpipe.flows.deliver import Recipient, resolve_recipients
from sealpipe.flows.session import Session
from sealpipe.plugin import Message
from sealpipe.plugin.context import OutgoingAction
from sealpipe.secret import Secret

MAX_NAMES = 50
"""Names of rows in one message."""


def describe_batch(session: Session, name: str, recipients: Sequence[Recipient] = ()) -> OutgoingAction:
    """Describe a batch for policies: its run, and the news of it if there are recipients. Blocks."""
    channels = tuple(session.registry().identify("channel", each.channel) for each in recipients)
    return OutgoingAction(
        "batch",
        recipients=tuple(each.address for each in recipients),
        channels=channels,
        title=name,
        service=session.base_url,
        link_address=session.link_base_url,
    )


def notify(engine: Engine, result: RunResult) -> tuple[str, ...]:
    """Send the news of a run, if there is any and the file names recipients. Returns what went wrong, as warnings."""
    notification = engine.definition.notify
    if notification is None or not result.changes:
        return ()
    message = build_news(result, with_rows=notification.rows)
    session = engine.driver.session
    try:
        recipients = engine.driver.run(resolve_recipients(notification.delivery, session.registry, {}))
        action = describe_batch(session, result.batch, recipients)
        sending = _send(session, recipients, message)
        return engine.driver.run(policy.run_under_policy(session, action, sending, _describe_outcome))
    except SealpipeError as error:
        return (f"the news of the batch were not sent: {error.message}",)


def _send(session: Session, recipients: Sequence[Recipient], message: Message) -> Flow[tuple[str, ...]]:
    from sealpipe.registry.calls import send_message

    warnings = []
    for recipient in recipients:
        work = partial(send_message, session.registry(), recipient.channel, message, recipient.to)
        try:
            yield Do(work, is_changing=True)
        except SealpipeError as error:
            warnings.append(f"the news of the batch may not have reached {recipient.shown}: {error.message}")
    return tuple(warnings)


def _describe_outcome(warnings: Sequence[str]) -> Mapping[str, object]:
    return {"outcome": "unclear" if warnings else "sent"}


def build_news(result: RunResult, *, with_rows: bool) -> Message:
    """Build the message about a run. It holds no link, no address and no secret."""
    counts = ", ".join(f"{number} {state}" for state, number in sorted(result.counts.items()))
    headline = f"{result.batch}: {counts}"
    lines = ["What changed in the last run of a batch:", "", headline, ""]
    lines += [f"{_count(number)} {what}" for what, number in Counter(each.what for each in result.changes).items()]
    if with_rows:
        lines += ["", *_name_rows(result.changes)]
    if result.failed:
        lines += [
            "",
            f"Rows that failed or are blocked: {result.failed}. `sealpipe batch status {result.batch}` says why.",
        ]
    if not result.waiting:
        lines += ["", "Every row has ended."]
    is_over = "" if result.waiting else ", every row has ended"
    subject = f"Batch {result.batch}{is_over}"
    return Message("batch", Secret(headline), Secret("\n".join(lines) + "\n"), subject, result.batch)


def _name_rows(changes: Sequence[Change]) -> list[str]:
    names = [f"{change.what}: {change.key}" for change in changes[:MAX_NAMES]]
    left = len(changes) - MAX_NAMES
    return names if left <= 0 else [*names, f"and {left} more"]


def _count(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


def check_allowed(session: Session, name: str) -> Flow[None]:
    """Ask every policy whether batches are allowed. Raises PolicyError, before anything is sent."""
    if session.policy_hooks:
        action: OutgoingAction = yield Do(partial(describe_batch, session, name))
        yield from policy.check_policies(session, action)
