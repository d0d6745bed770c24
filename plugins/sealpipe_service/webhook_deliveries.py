"""Sends due deliveries to webhook endpoints, and mails, with retries, by the service's clock.

One thread of each process looks for due deliveries, and leases one before it sends it. An endpoint
has at most one delivery in progress, in a separate thread, so that a slow endpoint does not delay
the others. They are ordered by due time, so later events may overtake one that waits for a retry. A
delivery in progress when the service stops is sent again: at least once.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from dataclasses import dataclass

from . import mail, webhooks
from .clock import Clock
from .database.access import DatabaseError, Row
from .database.decisions import Store
from .journal import Journal, Note
from .public_addresses import Allows
from .webhook_post import NOT_SENT, WebhookPost

BACKOFF = (10, 60, 300, 1_800, 7_200, 28_800)
"""Seconds to wait after each failed attempt. After the last wait there is one more attempt."""

_logger = logging.getLogger(__name__)

Post = WebhookPost | mail.MailPost

_STOP_SECONDS = 5
_POLL_SECONDS = 1.0
"""Longest wait between two checks: an injected clock may jump."""


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

    def __init__(
        self,
        store: Store,
        clock: Clock,
        log: Journal,
        signature_header: str,
        agent: str,
        seals: webhooks.Seals,
        allows: Allows,
        mail_server: mail.MailServer | None,
        ca_file: str | None,
    ) -> None:
        self._store, self._clock, self._log, self._seals = store, clock, log, seals
        self._signature_header, self._agent = signature_header, agent
        self._allows, self._mail_server, self._ca_file = allows, mail_server, ca_file
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._in_progress: dict[int, tuple[threading.Thread, Post]] = {}
        self._wake_requested = self._stopping = self._idle = False

    def wake(self) -> None:
        """Check soon for due deliveries. Returns at once."""
        if self._thread is None and not self._has_work():
            return
        with self._changed:
            self._wake_requested = True
            self._changed.notify_all()
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=self._run, name="sealpipe-webhooks", daemon=True
                )
                self._thread.start()

    def _has_work(self) -> bool:
        try:
            return self._store.next_delivery() is not None
        except DatabaseError:  # what was done is done; who sweeps asks again
            return False

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
        rows = self._store.deliveries()
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
        try:
            while not self._stopping and (row := self._store.lease_delivery()) is not None:
                self._start(row)
            wait = self._store.next_delivery()
        except DatabaseError as error:
            self._log.count("database_errors")
            _logger.warning("%s", error)
            wait = _POLL_SECONDS
        return None if wait is None else min(wait, _POLL_SECONDS)

    def _start(self, row: Row) -> None:
        endpoint = webhooks.find(self._store, row["webhook"])
        if endpoint is None:  # removed in the meantime, and its deliveries with it
            return
        try:
            post = self._make_post(endpoint, row)
        except webhooks.SealError as error:  # the operator has another key than before
            self._record_attempt(endpoint, row, type(error).__name__)
            return
        if post is None:
            self._record_attempt(endpoint, row, f"{NOT_SENT}no mail server is named")
            return
        thread = threading.Thread(target=self._deliver, args=(endpoint, row, post), daemon=True)
        with self._changed:
            if self._stopping:
                return
            self._in_progress[row["number"]] = thread, post
            thread.start()

    def _make_post(self, endpoint: webhooks.Endpoint, row: Row) -> Post | None:
        """Return an attempt; None for a mail without a server. Raises SealError."""
        body = bytes(row["body"])
        if (to := endpoint.mail_address) is not None:
            server = self._mail_server
            if server is None:
                return None
            content = mail.write(server, to, row["number"], row["created_at"], body)
            return mail.MailPost(server, to, content, self._ca_file)
        endpoint = webhooks.open_secrets(endpoint, self._seals)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            self._signature_header: endpoint.signature(body, self._clock.timestamp()),
        }
        return WebhookPost(endpoint.url, body, headers, self._allows, self._ca_file)

    def _deliver(self, endpoint: webhooks.Endpoint, row: Row, post: Post) -> None:
        try:
            answered = post.send()
            if self._stopping:
                self._store.release_delivery(row["number"])
            else:
                self._record_attempt(endpoint, row, answered)
        except sqlite3.ProgrammingError:  # the store is closed
            return
        except DatabaseError as error:  # it is sent again when its lease has ended
            self._log.count("database_errors")
            _logger.warning("%s", error)
        finally:
            with self._changed:
                self._in_progress.pop(row["number"], None)  # it may have been leased once more
                self._wake_requested = True
                self._changed.notify_all()

    def _record_attempt(self, endpoint: webhooks.Endpoint, row: Row, answered: int | str) -> None:
        """Record the result of an attempt. Only 2xx counts as delivered; a redirect does not."""
        is_accepted = isinstance(answered, int) and 200 <= answered < 300
        is_retried = not is_accepted and row["attempts"] < len(BACKOFF)
        again_in = BACKOFF[row["attempts"]] if is_retried else None
        state = "delivered" if is_accepted else "waiting" if is_retried else "given-up"
        is_refused = str(answered).startswith((NOT_SENT, webhooks.SealError.__name__))
        result = "delivered" if is_accepted else "not_sent" if is_refused else "failed"
        kind = "webhook" if endpoint.mail_address is None else "mail"
        self._log.count("deliveries", kind, result)
        settled = self._store.settle_delivery(row["number"], str(answered), state, again_in)
        if settled and state == "given-up":
            self._log.count("deliveries_given_up")
            self._log.add_note(Note(self._clock.now(), "webhook.given-up", endpoint.id))
