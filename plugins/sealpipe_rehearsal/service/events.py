"""Events: written down for everybody whom they are for, in the transaction of what they tell (specification: Events).

What is written down is sent by `delivering`, later and elsewhere: a call never waits for it, nor fails with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Row
from typing import TYPE_CHECKING

from .log import Note
from .plans import account_of
from .refusals import as_json
from .store import Store
from .webhooks import of_account

if TYPE_CHECKING:
    from .context import Service

KEPT = 2_000
"""How many deliveries that are over stay to be looked at."""

_QUEUE = "INSERT INTO deliveries (webhook, body, created_at, due) VALUES (:webhook, :body, :now, :now)"
_FORGET = """
DELETE FROM deliveries WHERE due IS NULL AND number <= (SELECT MAX(number) FROM deliveries) - :kept
"""


def queue(store: Store, account: str, payload: Mapping[str, object], now: float) -> bool:
    """Have an event sent to each endpoint of its account; whether there is any.

    Webhooks share the API's plan entitlement: without it nothing is sent.
    """
    endpoints = of_account(store, account)
    if not endpoints or not account_of(store, account).api_access:
        return False
    for endpoint in endpoints:
        store.change(_QUEUE, {"webhook": endpoint.id, "body": as_json(dict(payload)), "now": now})
    store.change(_FORGET, {"kept": KEPT})
    return True


def notify(service: Service, share: Row, what: str) -> None:
    """Tell a share's owner what became of it, where `notify_on` names that. No mail leaves here: it is a note."""
    if what in json.loads(share["notify_on"] or "[]"):
        service.log.note(Note(service.clock.now(), "owner.notified", f"{share['short_code']} {what}"))
