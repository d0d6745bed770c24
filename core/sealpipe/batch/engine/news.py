"""What the team has not heard yet.

The history of a batch's rows since the last message to a recipient.

Each recipient has an effect of its own, which says up to when it has heard everything. Whoever
takes it to `sending` sends the message. So workers and runs tell each change once, and what a
killed one did is told by the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sealpipe.batch.database.history import LATENESS
from sealpipe.batch.database.records import Batch, ConflictError, Effect, make_batch_row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.steps.states import MINUTE

MAX_NAMES: Final = 50
"""Names of rows in one message."""
_MOST_RECENT: Final = 5000
"""How many changes are held in memory, at first, before the older ones are left out."""
_SENDING_TIME: Final = 5 * MINUTE
"""How long a message may be on its way, in microseconds: then its sender is dead."""
_UNTOLD: Final = frozenset({"asked"})
"""Lines of the history that another one follows."""


@dataclass(slots=True)
class News:
    """What a recipient has not heard yet.

    `names` are the rows of the first changes; `content` is what to record.
    """

    effect: Effect | None
    counts: Counter[str] = field(default_factory=Counter)
    names: list[tuple[str, str]] = field(default_factory=list, repr=False)
    content: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_unclear(self) -> bool:
        """Whether the message before may not have arrived."""
        return self.effect is not None and bool(self.effect.content.get("unclear"))


class NewsLog:
    """The news of one batch, as its database has them."""

    def __init__(self, store: BatchStore, batch: Batch) -> None:
        self._store = store
        self._batch = batch
        self._row = make_batch_row(batch)

    def find(self, recipient: str, quiet: int = 0) -> News | None:
        """Return the news for a recipient; None if there are none, or somebody tells them now.

        None, too, if the last message is younger than `quiet` microseconds. Raises ConflictError.
        """
        effect, now = (
            self._store.effects.find(self._row, _name_effect(recipient)),
            self._store.now(),
        )
        if effect is not None and now - effect.at < (
            _SENDING_TIME if effect.state == "sending" else quiet
        ):
            return None
        news = News(effect)
        changes = self._store.history.count_changes(self._batch)
        if effect is not None and effect.content["changes"] == changes:
            return news if effect.state == "sending" else None
        self._read(news, effect, changes)
        return news if news.counts or (effect is not None and effect.state == "sending") else None

    def _read(self, news: News, effect: Effect | None, changes: int) -> None:
        before = {} if effect is None else effect.content
        since = before.get("until", 0) - LATENESS
        seen, recent, until = set(before.get("seen", ())), [], before.get("until", 0)
        most = _MOST_RECENT
        for row, number, event in self._store.history.read_since(self._batch, since):
            identity = f"{row[:12]}{number:x}"
            until = max(until, event.at)
            recent.append((event.at, identity))
            if len(recent) > most:
                recent = [each for each in recent if each[0] > until - LATENESS]
                most = _MOST_RECENT + 2 * len(recent)
            what = str(event.content["what"])
            if identity in seen or what in _UNTOLD:
                continue
            news.counts[what] += 1
            if len(news.names) < MAX_NAMES:
                news.names.append((what, row))
        seen_now = [identity for at, identity in recent if at > until - LATENESS]
        news.content = {"until": until, "seen": seen_now, "changes": changes}

    def name_rows(self, news: News) -> Iterator[str]:
        """Yield the changes that have a name, as `collected: acme`."""
        for what, row_id in news.names:
            row = self._store.read_row(self._batch, row_id)
            if row is not None:
                yield f"{what}: {row.key}"
        left = news.counts.total() - len(news.names)
        if left:
            yield f"and {left} more"

    def begin(self, recipient: str, news: News) -> Effect | None:
        """Take the news to `sending`; None if somebody else was faster."""
        effects = self._store.effects
        try:
            if news.effect is None:
                return effects.begin(self._row, _name_effect(recipient), news.content)
            return effects.repeat(self._row, news.effect, news.content)
        except ConflictError:
            return None

    def note_sent(self, effect: Effect) -> None:
        """Record that a message was sent."""
        self._store.effects.finish(effect, "done", effect.content)

    def note_not_sent(self, news: News, effect: Effect) -> None:
        """Record that a message was certainly not sent: what it had is told with the next."""
        before = {"until": 0, "changes": -1} if news.effect is None else news.effect.content
        self._store.effects.finish(effect, "failed", before)

    def note_unclear(self, effect: Effect) -> Effect:
        """Record that nobody knows whether a message arrived. Raises ConflictError."""
        return self._store.effects.finish(effect, "failed", {**effect.content, "unclear": True})


def _name_effect(recipient: str) -> str:
    return f"news/{recipient}"
