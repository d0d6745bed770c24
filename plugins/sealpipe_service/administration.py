"""What the account's holder and the operator do: keys, accounts, custody (specification:
Credential, Custody levels, Plan gating).

The secrets of a key are made elsewhere. Here arrive only the SHA-256 of the auth secret and the
custody public key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .credentials import CUSTODY_LEVELS, Key, columns_of, key_from
from .database.access import Row
from .database.decisions import Store
from .plans import NO_LIMIT, NUMBERS, Account, account_from, default_account
from .plans import columns_of as columns_of_account


class KeyExistsError(Exception):
    """A key with this id exists."""


class NoAccessError(Exception):
    """The plan of the account has no access to the API."""


class NotRequestedError(Exception):
    """The key did not request custody `account`, or has no registered public key."""


def add_key(store: Store, key: Key) -> None:
    """Add a key.

    Raises KeyExistsError, NoAccessError, QuotaError if the plan allows no further key, and
    CompromisedError for a secret that was ever compromised (gaps: compromise).
    """

    def allowed(plan: Row | None) -> int | None:
        # As in the app, the current plan counts, not the one that calls may still see.
        current = account_from(key.space, plan)
        if not current.api_access:
            raise NoAccessError
        return current.limits.api_keys

    if not store.add_key(columns_of(key), allowed):
        raise KeyExistsError


def approve_custody(store: Store, key_id: str) -> Key | None:
    """Approve custody `account` for a key that requested it; None if there is no such key.

    One of the account holder's devices does so. Raises NotRequestedError.
    """
    row = store.key(key_id)
    key = None if row is None else key_from(row)
    if key is None:
        return None
    if key.custody_requested < CUSTODY_LEVELS["account"] or key.custody_level == 0:
        raise NotRequestedError
    store.grant(key_id)
    row = store.key(key_id)
    return None if row is None else key_from(row)


_RATES: Mapping[object, int | None] = {"unset": None, "unlimited": NO_LIMIT}


def change_account(
    store: Store, name: str, changes: Mapping[str, object], *, at_once: bool
) -> Account:
    """Change an account's plan, limits and switches, and return it.

    A limit is a number or `plan`, the rate also `unset` or `unlimited`. Calls see the change within
    30 s, or at once.
    """
    members = {member: value for member, value in changes.items() if member not in NUMBERS}
    overrides = {member: value for member, value in changes.items() if member in NUMBERS}

    def changed(account: Account) -> Account:
        known: dict[str, object] = dict(account.numbers)
        if "plan" in members and known.get("api_keys") is None:
            known.pop("api_keys", None)  # a plan that was chosen brings its allowance
        known |= {each: _RATES.get(value, value) for each, value in overrides.items()}
        numbers = {each: value for each, value in known.items() if value != "plan"}
        return replace(account, **{**members, "numbers": numbers})  # type: ignore[arg-type]

    row = store.change_account(
        name,
        columns_of_account(default_account(name)),
        lambda row: columns_of_account(changed(account_from(name, row))),
        at_once=at_once,
    )
    return account_from(name, row)
