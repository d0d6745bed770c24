"""Tells the team what has changed: numbers, and names of rows only where the file says so.

Each change is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from sealpipe import policy
from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.records import Batch, ConflictError, Effect
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import Change, Engine
from sealpipe.batch.engine.news import News, NewsLog
from sealpipe.batch.engine.run import RunResult
from sealpipe.batch.steps.states import MINUTE
from sealpipe.delivery.recipients import Recipient, resolve_recipients
from sealpipe.errors import NOT_TAKEN, SealpipeError
from sealpipe.plugin import Message
from sealpipe.plugin.context import OutgoingAction
from sealpipe.registry.channels import send_message
from sealpipe.secret import Secret
from sealpipe.session import Session

NEWS_INTERVAL: Final = 10 * MINUTE
"""How often a worker tells what has changed, at most, in microseconds."""


def describe_batch(
    session: Session, name: str, recipients: Sequence[Recipient] = ()
) -> OutgoingAction:
    """Describe a batch for policies: its run, and the news of it if there are recipients."""
    channels = tuple(session.registry().identify("channel", each.channel) for each in recipients)
    return OutgoingAction(
        "batch",
        recipients=tuple(each.address for each in recipients),
        channels=channels,
        title=name,
        service=session.base_url,
        link_address=session.link_base_url,
    )


def notify(engine: Engine, quiet: int = 0) -> tuple[str, ...]:
    """Tell each recipient what has changed since its last message.

    Returns what went wrong, as warnings.

    Recipients whose last message is younger than `quiet` microseconds hear it later.
    """
    notification = engine.definition.notify
    if notification is None:
        return ()
    session, log = engine.session, NewsLog(engine.store, engine.batch)
    warnings: list[str] = []
    try:
        recipients = resolve_recipients(notification.delivery, session.registry, {})
        found = [
            (each, news)
            for each in recipients
            if (news := _find_news(log, each, quiet, warnings)) is not None
        ]
        if not found:
            return tuple(warnings)
        action = describe_batch(session, engine.batch.name, [recipient for recipient, _ in found])

        def send(session: Session) -> tuple[str, ...]:
            return _send(session, engine, log, found, with_rows=notification.rows)

        return (*warnings, *policy.run_under_policy(session, action, send, _describe_outcome))
    except SealpipeError as error:
        return (*warnings, f"the news of the batch were not sent: {error.message}")


def _find_news(log: NewsLog, recipient: Recipient, quiet: int, warnings: list[str]) -> News | None:
    """Return what there is to tell.

    If a sender is gone in the middle, say so once, here and in the next message.
    """
    try:
        news = log.find(recipient.address, quiet)
        if news is not None and news.effect is not None and news.effect.state == "sending":
            news.effect = log.note_unclear(news.effect)
            warnings.append(
                f"earlier news of the batch may not have reached {recipient.shown}: they "
                "are not repeated"
            )
    except ConflictError:
        return None  # somebody else does it
    return news if news is not None and news.counts else None


def _send(
    session: Session,
    engine: Engine,
    log: NewsLog,
    found: Sequence[tuple[Recipient, News]],
    *,
    with_rows: bool,
) -> tuple[str, ...]:
    warnings: list[str] = []
    for recipient, news in found:
        names = list(log.name_rows(news)) if with_rows else []
        message = build_news(
            RunResult(engine.batch.name, counts=engine.store.count_states(engine.batch)),
            news,
            names,
        )
        warning = _send_one(session, log, recipient, news, message)
        warnings += [warning] if warning else []
    return tuple(warnings)


def _send_one(
    session: Session, log: NewsLog, recipient: Recipient, news: News, message: Message
) -> str:
    """Record, send, record. Returns a warning, or nothing."""
    # Raises for missing settings before anything is recorded.
    session.registry().channel(recipient.channel)
    effect = log.begin(recipient.address, news)
    if effect is None:
        return ""  # somebody else sends it
    warning = ""
    note: Callable[[Effect], object] = log.note_sent
    try:
        send_message(session.registry(), recipient.channel, message, recipient.to)
    except NOT_TAKEN as error:
        warning = (
            f"the news of the batch were not sent to {recipient.shown}, and come with the "
            f"next: {error.message}"
        )
        note = partial(log.note_not_sent, news)
    except SealpipeError as error:
        warning = f"the news of the batch may not have reached {recipient.shown}: {error.message}"
        note = log.note_unclear
    with suppress(SealpipeError):  # without the note, it counts as unclear after a while
        note(effect)
    return warning


def _describe_outcome(warnings: Sequence[str]) -> Mapping[str, object]:
    return {"outcome": "unclear" if warnings else "sent"}


def build_news(result: RunResult, news: News, names: Sequence[str]) -> Message:
    """Build the message about a batch. It holds no link, no address and no secret."""
    counts = ", ".join(f"{number} {state}" for state, number in sorted(result.counts.items()))
    headline = f"{result.batch}: {counts}"
    lines = ["What has changed in a batch since the last message:", "", headline, ""]
    lines += [f"{_count(number)} {what}" for what, number in news.counts.items()]
    if names:
        lines += ["", *names]
    if news.is_unclear:
        lines += ["", "The message before this one may not have arrived."]
    if result.failed:
        lines += [
            "",
            (
                f"Rows that failed or are blocked: {result.failed}. `sealpipe batch status "
                f"{result.batch}` says why."
            ),
        ]
    if not result.waiting:
        lines += ["", "Every row has ended."]
    is_over = "" if result.waiting else ", every row has ended"
    subject = f"Batch {result.batch}{is_over}"
    return Message(
        "batch", Secret(headline), Secret("\n".join(lines) + "\n"), subject, result.batch
    )


def _count(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


class PeriodicNews:
    """Tells what a worker has changed: some time after it began, then as often, and at its end."""

    def __init__(
        self,
        store: BatchStore,
        open_engine: Callable[[Batch], Engine],
        on_change: Callable[[Batch, Change], object],
    ) -> None:
        self._store = store
        self._open_engine = open_engine
        self._on_change = on_change
        self._told_at: dict[str, int] = {}

    def tell(self, batch: Batch, *, is_last: bool = False) -> None:
        """Tell what has changed in a batch, if it is time. What goes wrong is told as a change."""
        with suppress(DatabaseUnavailableError):  # the next round finds what this one missed
            now = self._store.now()
            is_due = now - self._told_at.setdefault(batch.id, now) >= NEWS_INTERVAL
            if is_due or is_last:
                self._told_at[batch.id] = now
                for warning in notify(self._open_engine(batch), 0 if is_last else NEWS_INTERVAL):
                    self._on_change(batch, Change("[notify]", "failed", warning))


def check_allowed(session: Session, name: str) -> None:
    """Ask every policy whether batches are allowed. Raises PolicyError, before anything is sent."""
    policy.check_policies(session, lambda: describe_batch(session, name))
