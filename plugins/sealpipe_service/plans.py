"""Accounts, organisations, plan limits and the rate limiter.

Specification: Plan gating, Limits.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .store import Store

DEFAULT_ACCOUNT = "default"
ORGANIZATION = "org:"
"""Prefix of an organisation's space; no account's name begins with it."""

CACHE_SECONDS = 30
"""How long an entitlement is cached (specification: Limits, Plan cache delay)."""


@dataclass(frozen=True)
class Plan:
    """A row of the specification's limits.

    The rate is in requests per minute, None if unset; the burst is twice that.

    `shares` limits active shares; `access_log_days` is the retention of access logs. (The
    specification shows neither.) Of `api_keys` and `shares`, None means no limit.
    """

    api_access: bool
    requests_per_minute: int | None
    api_keys: int | None
    webhooks: int
    shares: int | None = None
    view_protection: bool = True
    access_log_days: int = 0


PLANS: Mapping[str, Plan] = {
    "business": Plan(
        api_access=True, requests_per_minute=100, api_keys=5, webhooks=3, access_log_days=90
    ),
    "enterprise": Plan(
        api_access=True, requests_per_minute=600, api_keys=25, webhooks=10, access_log_days=365
    ),
    "none": Plan(api_access=False, requests_per_minute=None, api_keys=0, webhooks=0),
}
BURST = 2

NUMBERS = ("requests_per_minute", "api_keys", "webhooks", "shares")
"""Limits that the operator can set for one account or organisation."""


@dataclass(frozen=True)
class Account:
    """An account or organisation: its plan, its own limits, its switches.

    A custody wrap is stored only if both zero-knowledge switches are on (POST /v1/shares, rule 5).
    """

    name: str
    plan: str = "business"
    numbers: Mapping[str, int | None] = field(default_factory=dict)
    view_protection: bool = True
    zero_knowledge_enrolled: bool = True
    zero_knowledge_feature: bool = True

    @property
    def limits(self) -> Plan:
        """Return the plan's row with this account's own limits and view protection."""
        row = PLANS[self.plan]
        own: dict[str, Any] = {
            **self.numbers,
            "view_protection": row.view_protection and self.view_protection,
        }
        return replace(row, **own)

    @property
    def api_access(self) -> bool:
        """Return whether the API may be used.

        An unset rate means no access, not unlimited access.
        """
        return self.limits.api_access and self.limits.requests_per_minute is not None

    @property
    def stores_wraps(self) -> bool:
        """Return whether a custody wrap sent by one of its keys can be stored."""
        return self.zero_knowledge_enrolled and self.zero_knowledge_feature


def load_account(store: Store, name: str) -> Account:
    """Return the current account, with defaults if nothing was set.

    The default account may have any number of keys until its plan or its allowance is set: who
    rehearses makes a key for each attempt, in `export NAME="$(...)"`, which hides a refusal.
    """
    row = store.row("SELECT * FROM accounts WHERE name = :name", {"name": name})
    if row is None:
        return Account(name, numbers={"api_keys": None} if name == DEFAULT_ACCOUNT else {})
    return Account(
        name=row["name"],
        plan=row["plan"],
        numbers=json.loads(row["numbers"]),
        view_protection=bool(row["view_protection"]),
        zero_knowledge_enrolled=bool(row["zero_knowledge_enrolled"]),
        zero_knowledge_feature=bool(row["zero_knowledge_feature"]),
    )


def save_account(store: Store, account: Account) -> None:
    """Store an account."""
    store.change(
        """INSERT OR REPLACE INTO accounts VALUES
           (:name, :plan, :numbers, :view_protection, :zero_knowledge_enrolled,
            :zero_knowledge_feature)""",
        {**vars(account), "numbers": json.dumps(dict(account.numbers))},
    )


class Entitlements:
    """A cache of accounts for the checks of calls, up to 30 s old."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: dict[str, tuple[float, Account]] = {}

    def get(self, store: Store, name: str, now: float) -> Account:
        """Return the account, at most 30 s old."""
        with self._lock:
            cached = self._cached.get(name)
            if cached is None or not 0 <= now - cached[0] < CACHE_SECONDS:
                cached = self._cached[name] = now, load_account(store, name)
            return cached[1]

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._cached.clear()


_ROUNDING = 6
"""Decimal places that count: after the wait for Retry-After, a missing 1e-16 must not cause another
429.
"""


class RateLimiter:
    """A token bucket per API key.

    It starts full, holds the burst and refills at the sustained rate.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key_id: str, per_minute: int, now: float) -> int:
        """Take one call. Return 0 if it is allowed, otherwise the seconds to wait, rounded up."""
        burst, per_second = float(per_minute * BURST), per_minute / 60
        with self._lock:
            tokens, updated_at = self._buckets.get(key_id, (burst, now))
            # A clock that was set back must not remove tokens.
            tokens = min(burst, tokens + max(0.0, now - updated_at) * per_second)
            allowed = round(tokens, _ROUNDING) >= 1
            self._buckets[key_id] = tokens - allowed, now
        return 0 if allowed else max(1, math.ceil(round((1 - tokens) / per_second, _ROUNDING)))

    def clear(self) -> None:
        """Refill all buckets."""
        with self._lock:
            self._buckets.clear()
