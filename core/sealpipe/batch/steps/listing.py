"""What the service lists, read whole and for all rows of a run together.

Active requests by public key, active shares.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from sealpipe.api import requests, shares
from sealpipe.api.operation import Operation
from sealpipe.api.requests import RequestInfo
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.steps.states import MINUTE
from sealpipe.budget import call
from sealpipe.errors import RetriesExhaustedError
from sealpipe.lookup import PAGE_SIZE, read_whole
from sealpipe.session import Session

TRIES = 3
MAX_AGE = 5 * MINUTE
"""How long a list serves: what was created since then by another client is not in it."""


class _Snapshot(NamedTuple):
    taken_at: int
    rows: Mapping[Hashable, Any]


class ServiceList:
    """The active requests and shares of the account.

    Threads share it; one reads while the others wait.
    """

    def __init__(self, session: Session, store: BatchStore) -> None:
        self._session = session
        self._store = store
        self._lock = threading.Lock()
        self._snapshots: dict[str, _Snapshot] = {}

    def fetch_requests(self, since: int = 0) -> Mapping[Hashable, RequestInfo]:
        """Return the active requests by public key (base64url), fetched after `since`."""
        return self._fetch("requests", since, requests.list_page, lambda row: row.public_key)

    def fetch_shares(self, since: int = 0) -> Mapping[Hashable, Any]:
        """Return the shares that can still be opened by short code, fetched after `since`."""
        return self._fetch("shares", since, shares.list_page, lambda row: row.short_code)

    def _fetch(
        self,
        name: str,
        since: int,
        list_page: Callable[[int, int], Operation[Any]],
        identify: Callable[[Any], Hashable],
    ) -> Mapping[Hashable, Any]:
        with self._lock:
            found = self._snapshots.get(name)
            now = self._store.now()
            if found is None or found.taken_at <= since or now - found.taken_at > MAX_AGE:
                rows = self._walk(name, list_page)
                found = self._snapshots[name] = _Snapshot(now, {identify(row): row for row in rows})
            return found.rows

    def _walk(self, name: str, list_page: Callable[[int, int], Operation[Any]]) -> list[Any]:
        for _ in range(TRIES):
            rows = read_whole(
                lambda number: call(list_page(number, PAGE_SIZE), self._session.start_budget()),
                lambda row: row.short_code,
            )
            if rows is not None:
                return list(rows.values())
        raise RetriesExhaustedError(
            f"could not list the {name}: the list changed while it was read"
        )
