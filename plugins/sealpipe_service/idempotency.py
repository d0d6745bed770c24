"""Idempotency-Key: one outcome per key and body (specification: POST /v1/shares)."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager

from .database.access import InFlightError
from .database.decisions import Creating, OtherBodyError, Store
from .responses import refuse


def read_key(header: str | None) -> str:
    """Return the header's value. Refuses with 104 if it is missing or blank."""
    name = (header or "").strip(" \t")
    if not name:
        refuse("idempotency_key_missing")
    return name


@contextmanager
def claim(
    store: Store, key_id: str, auth_secret: str, name: str, body: bytes
) -> Iterator[Creating]:
    """Claim an idempotency key while its call is handled.

    Refuses with 105 if it was used with another body (finished or in flight), with 106 if the same
    call is still in flight. The hash is over the raw bytes, never over parsed JSON. It takes the
    caller's secret, which the database does not have: a request's body has the passcode in it, and
    whoever copied the database could check guesses.
    """
    body_mac = hmac.digest(auth_secret.encode(), body, "sha256").hex()
    try:
        with store.claim(key_id, name, body_mac) as creating:
            yield creating
    except OtherBodyError:
        refuse("idempotency_other_body")
    except InFlightError as error:
        refuse("idempotency_in_flight" if error.same_body else "idempotency_other_body")
