"""`sealpipe server account`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.keys import check_account
from sealpipe.cli.server.opening import open_store
from sealpipe.errors import UsageError, quote_input
from sealpipe_service import administration
from sealpipe_service.database.decisions import Store
from sealpipe_service.plans import NO_LIMIT, ORGANIZATION, Account, account_from

_LIMITS = {"rate": "requests_per_minute", "keys": "api_keys"}
CHANGES = ("plan", "rate", "keys", "shares", "webhooks", "view_protection", "zero_knowledge")


def list_accounts(**values: Any) -> None:
    """Run `sealpipe server account list`."""
    with open_store(values) as store:
        found = [_describe(account_from(row["name"], row)) for row in store.accounts()]
    if values["output"] == "json":
        render.print_json({"accounts": found})
        return
    rows = [
        (
            render.escape(each["account"]),
            each["plan"],
            *(_limit(name, each[name]) for name in ("requests_per_minute", "api_keys", "shares")),
        )
        for each in found
    ]
    render.print_table(("ACCOUNT", "PLAN", "RATE", "KEYS", "SHARES"), rows)


def add(name: str, **values: Any) -> None:
    """Run `sealpipe server account add`."""
    check_name(name)
    with open_store(values) as store:
        if store.account(name) is not None:
            raise UsageError(
                f"there is an account {quote_input(name)}",
                remedy="`sealpipe server account plan` changes it",
            )
        account = add_account(store, name, values["plan"])
    _print(account, values)


def add_account(store: Store, name: str, plan: str | None) -> Account:
    """Add an account, which calls see at once."""
    changes = {"plan": plan or "enterprise", "api_keys": "plan"}
    return administration.change_account(store, name, changes, at_once=True)


def check_name(name: str) -> None:
    """Check the name of an account, or of an organisation behind `org:`."""
    bare = name.removeprefix(ORGANIZATION)
    if not 0 < len(bare.strip()) <= 256 or bare.startswith(ORGANIZATION) or not bare.isprintable():
        raise UsageError(
            "the name of an account has 1 to 256 printable characters",
            remedy="write it as ci, or org:acme for an organisation",
        )


def change_plan(name: str, **values: Any) -> None:
    """Run `sealpipe server account plan`."""
    changes = {each: values[each] for each in CHANGES if values[each] is not None}
    for each in ("keys", "shares", "webhooks"):
        if changes.get(each) in ("unset", "unlimited"):
            raise UsageError(
                f"--{each}: only --rate can be {changes[each]}", remedy="write a number, or plan"
            )
    with open_store(values) as store:
        check_account(store, name)
        if changes:
            account = administration.change_account(
                store, name, dict(_members(changes)), at_once=False
            )
        else:
            account = account_from(name, store.account(name))
    _print(account, values)


def _members(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return changes by the service's names."""
    members = {_LIMITS.get(name, name): value for name, value in changes.items()}
    members = {
        name: value == "on" if value in ("on", "off") else value for name, value in members.items()
    }
    if "zero_knowledge" in members:
        is_on = members.pop("zero_knowledge")
        members |= {"zero_knowledge_enrolled": is_on, "zero_knowledge_feature": is_on}
    return members


def _describe(account: Account) -> dict[str, Any]:
    limits = account.limits
    return {
        "account": account.name,
        "plan": account.plan,
        "api_access": account.api_access,
        "requests_per_minute": limits.requests_per_minute,
        "api_keys": limits.api_keys,
        "shares": limits.shares,
        "webhooks": limits.webhooks,
        "view_protection": limits.view_protection,
        "zero_knowledge": account.stores_wraps,
    }


def _print(account: Account, values: Mapping[str, Any]) -> None:
    members = _describe(account)
    if values["output"] == "json":
        render.print_json(members)
        return
    render.print_lines(
        f"{name.replace('_', ' ')}: {_say(name, value)}" for name, value in members.items()
    )


def _say(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return render.escape(str(value)) if isinstance(value, str) else _limit(name, value)


def _limit(name: str, number: int | None) -> str:
    """Return a limit in words. A rate that is not set is no access."""
    if name == "requests_per_minute" and number is None:
        return "no access"
    return "no limit" if number in (None, NO_LIMIT) else str(number)
