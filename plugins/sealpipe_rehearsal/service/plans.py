"""Accounts and what their plans allow (specification: Plan gating, Limits)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .store import Store

DEFAULT_ACCOUNT = "default"


@dataclass(frozen=True)
class Plan:
    """A row of the specification's limits. Rates are requests a minute; the burst is twice that."""

    api_access: bool
    requests_per_minute: int
    api_keys: int
    webhooks: int


PLANS: Mapping[str, Plan] = {
    "business": Plan(api_access=True, requests_per_minute=100, api_keys=5, webhooks=3),
    "enterprise": Plan(api_access=True, requests_per_minute=600, api_keys=25, webhooks=10),
    "none": Plan(api_access=False, requests_per_minute=0, api_keys=0, webhooks=0),
}


@dataclass(frozen=True)
class Account:
    """An account and its switches. Storing a wrap needs both zero-knowledge ones."""

    name: str
    plan: str = "business"
    view_protection: bool = True
    zero_knowledge_enrolled: bool = True
    zero_knowledge_feature: bool = True

    @property
    def stores_wraps(self) -> bool:
        """Whether a wrap sent by one of its keys can be stored (POST /v1/shares, rule 5)."""
        return self.zero_knowledge_enrolled and self.zero_knowledge_feature


def account_of(store: Store, name: str) -> Account:
    """The account, with the defaults where nobody set anything."""
    row = store.row("SELECT * FROM accounts WHERE name = :name", {"name": name})
    if row is None:
        return Account(name)
    return Account(
        name=row["name"],
        plan=row["plan"],
        view_protection=bool(row["view_protection"]),
        zero_knowledge_enrolled=bool(row["zero_knowledge_enrolled"]),
        zero_knowledge_feature=bool(row["zero_knowledge_feature"]),
    )


def save_account(store: Store, account: Account) -> None:
    """Store an account as it is now."""
    store.change(
        """INSERT OR REPLACE INTO accounts VALUES
           (:name, :plan, :view_protection, :zero_knowledge_enrolled, :zero_knowledge_feature)""",
        vars(account),
    )
