"""Sends due deliveries to webhook endpoints, with retries, by the service's clock.

One thread looks for due deliveries. Each endpoint has at most one delivery in progress, in a
separate thread, so that a slow endpoint does not delay the others. They are ordered by due time, so
later events may overtake one that waits for a retry. A delivery in progress when the service stops
is sent again: at least once.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from sqlite3 import Row

from . import webhooks
from .clock import Clock
from .journal import Journal, Note
from .store import Store
from .webhook_post import WebhookPost

BACKOFF = (10, 60, 300, 1_800, 7_200, 28_800)
"""Seconds to wait after each failed attempt. After the last wait there is one more attempt."""

_STOP_SECONDS = 5
_POLL_SECONDS = 1.0
"""Longest wait between two checks: an injected clock may jump."""

_SELECT_DUE = """SELECT * FROM deliveries WHERE webhook = :webhook AND due IS NOT NULL
           ORDER BY due, number LIMIT 1"""
_SELECT_ENDPOINTS = "SELECT DISTINCT webhook FROM deliveries WHERE due IS NOT NULL"
_RECORD_ATTEMPT = """UPDATE deliveries
           SET attempts = attempts + 1, due = :due, state = :state, answered = :answered
           WHERE number = :number"""


@dataclass(frozen=True)
class WebhookDelivery:
    """A delivery.

    `state` is `waiting`, `delivered` or `given-up`; `answered` is the last status or error.

    `due` is the next attempt, in seconds since 1970 by the service's clock.
    """

    webhook: str
    body: bytes
    created_at: float
    attempts: int
    due: float | None
    state: str
    answered: str | None


class Deliverer:
    """Sends deliveries. Its thread starts with the first delivery."""

    def __init__(self, store: Store, clock: Clock, log: Journal, signature_header: str) -> None:
        self._store, self._clock, self._log = store, clock, log
        self._signature_header = signature_header
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._in_progress: dict[str, tuple[threading.Thread, WebhookPost]] = {}
        self._wake_requested = self._stopping = self._idle = False

    def wake(self) -> None:
        """Check soon for due deliveries. Returns at once."""
        if self._thread is None and not self._store.rows(_SELECT_ENDPOINTS, {}):
            return
        with self._changed:
            self._wake_requested = True
            self._changed.notify_all()
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=self._run, name="sealpipe-webhooks", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Stop sending and abort what is in progress. Returns once no thread uses the store."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            sending = list(self._in_progress.values())
        for _, post in sending:
            post.abort()
        for thread in (self._thread, *(each for each, _ in sending)):
            if thread is not None:
                thread.join(_STOP_SECONDS)

    def wait_idle(self, seconds: float) -> bool:
        """Wait until nothing is due or in progress, at most some seconds.

        Return whether that is so.
        """

        def done() -> bool:
            return self._thread is None or (
                self._idle and not self._wake_requested and not self._in_progress
            )

        with self._changed:
            return self._changed.wait_for(done, seconds)

    def all(self) -> list[WebhookDelivery]:
        """Return every waiting delivery and the latest finished ones, oldest first."""
        names = WebhookDelivery.__dataclass_fields__
        rows = self._store.rows("SELECT * FROM deliveries ORDER BY number", {})
        return [WebhookDelivery(**{name: row[name] for name in names}) for row in rows]

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._wake_requested = False
                wait = self._send_due()
                with self._changed:
                    if not self._wake_requested and not self._stopping:
                        self._idle = True
                        self._changed.notify_all()
                        self._changed.wait(wait)
                        self._idle = False
        except sqlite3.ProgrammingError:  # the store is closed
            return

    def _send_due(self) -> float | None:
        """Start due deliveries; return the seconds until the next one, None if none is waiting."""
        now, soonest = self._clock.timestamp(), None
        for (name,) in self._store.rows(_SELECT_ENDPOINTS, {}):
            # checked before the query, which could otherwise return the delivery in progress, and
            # it would be sent twice
            if name in self._in_progress:
                continue
            row = self._store.row(_SELECT_DUE, {"webhook": name})
            endpoint = webhooks.find(self._store, name)
            if row is None or endpoint is None:
                continue
            if row["due"] <= now:
                self._start(endpoint, row, now)
            else:
                wait = min(row["due"] - now, _POLL_SECONDS)
                soonest = wait if soonest is None else min(soonest, wait)
        return soonest

    def _start(self, endpoint: webhooks.Endpoint, row: Row, now: float) -> None:
        body = bytes(row["body"])
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "sealpipe-rehearsal-webhooks",
            self._signature_header: endpoint.signature(body, now),
        }
        post = WebhookPost(endpoint.url, body, headers)
        thread = threading.Thread(target=self._deliver, args=(endpoint, row, post), daemon=True)
        with self._changed:
            if self._stopping:
                return
            self._in_progress[endpoint.id] = thread, post
            thread.start()

    def _deliver(self, endpoint: webhooks.Endpoint, row: Row, post: WebhookPost) -> None:
        try:
            answered = post.send()
            if not self._stopping:
                self._record_attempt(endpoint, row, answered)
        except sqlite3.ProgrammingError:  # the store is closed
            return
        finally:
            with self._changed:
                del self._in_progress[endpoint.id]
                self._wake_requested = True
                self._changed.notify_all()

    def _record_attempt(self, endpoint: webhooks.Endpoint, row: Row, answered: int | str) -> None:
        """Record the result of an attempt. Only 2xx counts as delivered; a redirect does not."""
        is_accepted = isinstance(answered, int) and 200 <= answered < 300
        is_retried = not is_accepted and row["attempts"] < len(BACKOFF)
        due = self._clock.timestamp() + BACKOFF[row["attempts"]] if is_retried else None
        state = "delivered" if is_accepted else "waiting" if is_retried else "given-up"
        values = {"number": row["number"], "due": due, "state": state, "answered": str(answered)}
        if self._store.change(_RECORD_ATTEMPT, values) and state == "given-up":
            self._log.add_note(Note(self._clock.now(), "webhook.given-up", endpoint.id))
