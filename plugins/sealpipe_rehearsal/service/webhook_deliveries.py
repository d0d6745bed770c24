"""Sending what is due to webhook endpoints: in threads of its own, again and again, by the service's clock.

One thread looks what is due; each endpoint has at most one delivery under way, so that a silent one holds up no other.
What is due first goes first: an event that waits to be tried again is overtaken by later ones. What is under way when
the service ends is sent again: twice is possible, never is not.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from sqlite3 import Row

from . import webhooks
from .clock import Clock
from .log import Log, Note
from .store import Store
from .webhook_post import Post

BACKOFF = (10, 60, 300, 1_800, 7_200, 28_800)
"""Seconds after each attempt that failed; after the last of them one more, and then it is given up."""

_STOP_SECONDS = 5
_LOOK_SECONDS = 1.0
"""A clock that somebody else moves does not tell: so often it is looked at while anything waits."""

_DUE = """SELECT * FROM deliveries WHERE webhook = :webhook AND due IS NOT NULL ORDER BY due, number LIMIT 1"""
_ENDPOINTS = "SELECT DISTINCT webhook FROM deliveries WHERE due IS NOT NULL"
_TOLD = """UPDATE deliveries SET attempts = attempts + 1, due = :due, state = :state, answered = :answered
           WHERE number = :number"""


@dataclass(frozen=True)
class Delivery:
    """A delivery as it stands. `state` is `waiting`, `delivered` or `given-up`; `answered` the last status or failure.

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
    """The sending side. It starts its thread when there is something to send, and not before."""

    def __init__(self, store: Store, clock: Clock, log: Log, signature_header: str) -> None:
        self._store, self._clock, self._log = store, clock, log
        self._signature_header = signature_header
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy: dict[str, tuple[threading.Thread, Post]] = {}
        self._woken = self._ending = self._resting = False

    def wake(self) -> None:
        """Something may be due now. Returns at once."""
        if self._thread is None and not self._store.rows(_ENDPOINTS, {}):
            return
        with self._changed:
            self._woken = True
            self._changed.notify_all()
            if self._thread is None and not self._ending:
                self._thread = threading.Thread(target=self._run, name="sealpipe-webhooks", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Send nothing more; what is under way is cut. Returns once no thread of ours uses the store."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            sending = list(self._busy.values())
        for _, post in sending:
            post.cut()
        for thread in (self._thread, *(each for each, _ in sending)):
            if thread is not None:
                thread.join(_STOP_SECONDS)

    def settle(self, seconds: float) -> bool:
        """Wait until nothing is due and nothing under way, or for so long; whether that is so."""

        def done() -> bool:
            return self._thread is None or (self._resting and not self._woken and not self._busy)

        with self._changed:
            return self._changed.wait_for(done, seconds)

    def all(self) -> list[Delivery]:
        """Every delivery that is waiting, and those of late that are over; oldest first."""
        names = Delivery.__dataclass_fields__
        rows = self._store.rows("SELECT * FROM deliveries ORDER BY number", {})
        return [Delivery(**{name: row[name] for name in names}) for row in rows]

    def _run(self) -> None:
        try:
            while not self._ending:
                self._woken = False
                wait = self._send_what_is_due()
                with self._changed:
                    if not self._woken and not self._ending:
                        self._resting = True
                        self._changed.notify_all()
                        self._changed.wait(wait)
                        self._resting = False
        except sqlite3.ProgrammingError:  # the store was closed before us
            return

    def _send_what_is_due(self) -> float | None:
        """Start what is due; the seconds until something will be, None where nothing waits."""
        now, soonest = self._clock.timestamp(), None
        for (name,) in self._store.rows(_ENDPOINTS, {}):
            # Asked first: what is read while one is under way may be that very one, which then goes out twice.
            if name in self._busy:
                continue
            row = self._store.row(_DUE, {"webhook": name})
            endpoint = webhooks.find(self._store, name)
            if row is None or endpoint is None:
                continue
            if row["due"] <= now:
                self._start(endpoint, row, now)
            else:
                wait = min(row["due"] - now, _LOOK_SECONDS)
                soonest = wait if soonest is None else min(soonest, wait)
        return soonest

    def _start(self, endpoint: webhooks.Endpoint, row: Row, now: float) -> None:
        body = bytes(row["body"])
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "sealpipe-rehearsal-webhooks",
            self._signature_header: endpoint.signature(body, now),
        }
        post = Post(endpoint.url, body, headers)
        thread = threading.Thread(target=self._deliver, args=(endpoint, row, post), daemon=True)
        with self._changed:
            if self._ending:
                return
            self._busy[endpoint.id] = thread, post
            thread.start()

    def _deliver(self, endpoint: webhooks.Endpoint, row: Row, post: Post) -> None:
        try:
            answered = post.send()
            if not self._ending:
                self._tell(endpoint, row, answered)
        except sqlite3.ProgrammingError:  # the store was closed before us
            return
        finally:
            with self._changed:
                del self._busy[endpoint.id]
                self._woken = True
                self._changed.notify_all()

    def _tell(self, endpoint: webhooks.Endpoint, row: Row, answered: int | str) -> None:
        """Write down how an attempt ended. Taken is what is answered 2xx; a redirect is not."""
        taken = isinstance(answered, int) and 200 <= answered < 300
        again = not taken and row["attempts"] < len(BACKOFF)
        due = self._clock.timestamp() + BACKOFF[row["attempts"]] if again else None
        state = "delivered" if taken else "waiting" if again else "given-up"
        values = {"number": row["number"], "due": due, "state": state, "answered": str(answered)}
        if self._store.change(_TOLD, values) and state == "given-up":
            self._log.note(Note(self._clock.now(), "webhook.given-up", endpoint.id))
