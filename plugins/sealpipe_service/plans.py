"""Accounts, organisations and plan limits.

Specification: Plan gating, Limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from .database.access import Row

DEFAULT_ACCOUNT = "default"
NO_LIMIT = -1
"""A rate of this is none at all, as capabilities tell it."""
ORGANIZATION = "org:"
"""Prefix of an organisation's space; no account's name begins with it."""


@dataclass(frozen=True)
class Plan:
    """A row of the specification's limits.

    The rate is in requests per minute, None if unset, or NO_LIMIT; the burst is twice that.

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
NUMBERS = ("requests_per_minute", "api_keys", "webhooks", "shares")
"""Limits that the operator can set for one account or organisation."""


SWITCHES = ("view_protection", "zero_knowledge_enrolled", "zero_knowledge_feature")


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

    @cached_property
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


def default_account(name: str) -> Account:
    """Return an account that was never set.

    The default account may have any number of keys until its plan or its allowance is set: who
    rehearses makes a key for each attempt, in `export NAME="$(...)"`, which hides a refusal.
    """
    return Account(name, numbers={"api_keys": None} if name == DEFAULT_ACCOUNT else {})


def account_from(name: str, row: Row | None, prefix: str = "") -> Account:
    """Return an account from its row, whose columns may have a prefix; the default without one."""
    if row is None or row[f"{prefix}plan"] is None:
        return default_account(name)
    switches = (bool(row[f"{prefix}{each}"]) for each in SWITCHES)
    return _make_account(name, row[f"{prefix}plan"], row[f"{prefix}numbers"], *switches)


@lru_cache(1024)
def _make_account(name: str, plan: str, numbers: str, *switches: bool) -> Account:
    return Account(name, plan, json.loads(numbers), *switches)


def columns_of(account: Account) -> dict[str, object]:
    """Return the columns of an account's row."""
    return {
        "plan": account.plan,
        "numbers": json.dumps(dict(account.numbers)),
        **{each: int(getattr(account, each)) for each in SWITCHES},
    }
