"""Idempotency-Key: one outcome per key and body (specification: POST /v1/shares).

Finished calls are records in the store, written in the transaction that creates their row. Calls in
flight are marked only in memory, so that a crash removes the marker together with the call.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .responses import refuse
from .store import Store

RETENTION_SECONDS = 24 * 60 * 60


class InFlight:
    """The calls in progress: (API key, idempotency key) and the SHA-256 of the body."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bodies: dict[tuple[str, str], str] = {}


class Claim:
    """A call's claim on its idempotency key.

    `replay` is the body of the first response, if there was one.
    """

    def __init__(self, key_id: str, name: str, body_sha256: str, replay: bytes | None) -> None:
        self.key_id = key_id
        self.name = name
        self.body_sha256 = body_sha256
        self.replay = replay

    def record(self, store: Store, answer: bytes, now: float) -> None:
        """Store the body of a 2xx response. Call it inside the transaction that creates the row."""
        store.change(
            (
                "INSERT OR REPLACE INTO idempotency VALUES (:key_id, :name, :body_sha256, "
                ":answer, :now)"
            ),
            {
                "key_id": self.key_id,
                "name": self.name,
                "body_sha256": self.body_sha256,
                "answer": answer,
                "now": now,
            },
        )


def read_key(header: str | None) -> str:
    """Return the header's value. Refuses with 104 if it is missing or blank."""
    name = (header or "").strip(" \t")
    if not name:
        refuse("idempotency_key_missing")
    return name


@contextmanager
def claim(
    in_flight: InFlight, store: Store, key_id: str, name: str, body: bytes, now: float
) -> Iterator[Claim]:
    """Claim an idempotency key while its call is handled.

    Refuses with 105 if it was used with another body (finished or in flight), with 106 if the same
    call is still in flight. The hash is over the raw bytes, never over parsed JSON.
    """
    body_sha256 = hashlib.sha256(body).hexdigest()
    slot = (key_id, name)
    # The marker is checked before the record: a call writes its record before it drops its marker,
    # so without a marker there is either a record or no earlier call.
    with in_flight.lock:
        body_in_flight = in_flight.bodies.get(slot)
        if body_in_flight is not None:
            refuse(
                "idempotency_in_flight"
                if body_in_flight == body_sha256
                else "idempotency_other_body"
            )
        replay = _find_replay(store, key_id, name, body_sha256, now)
        if replay is None:
            in_flight.bodies[slot] = body_sha256
    try:
        yield Claim(key_id, name, body_sha256, replay)
    finally:
        if replay is None:
            with in_flight.lock:
                del in_flight.bodies[slot]


def _find_replay(
    store: Store, key_id: str, name: str, body_sha256: str, now: float
) -> bytes | None:
    row = store.row(
        """SELECT body_sha256, answer FROM idempotency
           WHERE key_id = :key_id AND name = :name AND created_at > :oldest""",
        {"key_id": key_id, "name": name, "oldest": now - RETENTION_SECONDS},
    )
    if row is None:
        return None
    if row["body_sha256"] != body_sha256:
        refuse("idempotency_other_body")
    return bytes(row["answer"])
