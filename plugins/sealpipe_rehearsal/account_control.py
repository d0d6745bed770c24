"""The control API for keys and accounts: what the web app and the operator of the real service do.

Keys are registered as by the app: the secrets are created elsewhere; only the SHA-256 of the auth
secret, the custody public key and (for the log of a rehearsal) the SHA-256 of the custody secret
arrive here (specification: Credential, Custody levels, Plan gating).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sealpipe_service import administration
from sealpipe_service.checks import Check, count, matching, p256_point, switch, text
from sealpipe_service.context import HttpRequest
from sealpipe_service.credentials import (
    CUSTODY_LEVELS,
    EXTENDED_SCOPES,
    FORM_CUSTODY,
    FORM_SCOPES,
    MAX_NAME,
    SCOPES,
    Key,
    key_from,
)
from sealpipe_service.database.access import Row
from sealpipe_service.database.decisions import CompromisedError, QuotaError
from sealpipe_service.json_bodies import Rule, read_object, rejected
from sealpipe_service.plans import (
    DEFAULT_ACCOUNT,
    NUMBERS,
    ORGANIZATION,
    PLANS,
)
from sealpipe_service.responses import RefusalError, Response, json_response, refuse

from .rehearsed import RehearsedService

_LEVEL_NAMES = {level: name for name, level in CUSTODY_LEVELS.items()}


def one_of(names: Mapping[str, object]) -> Check:
    """Return a check for one of these words."""
    return lambda value: None if value in list(names) else f"must be one of {', '.join(names)}"


def key_name(value: object) -> str | None:
    """Check a key's name: 1 to 256 characters after trimming (gaps: key name)."""
    is_valid = isinstance(value, str) and 0 < len(value.strip()) <= MAX_NAME
    return text(value) or (None if is_valid else f"must have 1 to {MAX_NAME} characters")


def account_name(value: object) -> str | None:
    """Check the name of an account or organisation."""
    is_reserved = isinstance(value, str) and value.startswith(ORGANIZATION)
    return key_name(value) or (f"must not begin with {ORGANIZATION}" if is_reserved else None)


def scopes_in(known: tuple[str, ...]) -> Check:
    """Return a check for an array of known scopes.

    It may be empty; every endpoint then refuses the key.
    """

    def check(value: object) -> str | None:
        fits = isinstance(value, list) and all(scope in known for scope in value)
        return None if fits else f"must be an array of {', '.join(known)}"

    return check


def number_or_plan(value: object) -> str | None:
    """Check a limit of one account, or `plan` for the plan's own limit."""
    return None if value == "plan" or not count(value) else "must be a number from 1, or plan"


def requests_per_minute_limit(value: object) -> str | None:
    """Check a number of requests per minute, `plan`, `unlimited`, or `unset`: no access."""
    if value in ("unset", "unlimited"):
        return None
    return number_or_plan(value) and "must be a number from 1, plan, unset or unlimited"


_KEY = {
    "key_id": Rule(
        matching(r"[A-Za-z0-9_-]{16}", "must be 16 characters of base64url"), required=True
    ),
    "auth_sha256": Rule(
        matching(r"[0-9a-f]{64}", "must be SHA-256 in lower-case hex"), required=True
    ),
    "name": Rule(key_name, required=True),
    "scopes": Rule(scopes_in(SCOPES)),
    "custody": Rule(one_of(CUSTODY_LEVELS)),
    "custody_public_key": Rule(p256_point),
    "custody_sha256": Rule(matching(r"[0-9a-f]{64}", "must be SHA-256 in lower-case hex")),
    "account": Rule(account_name),
    "organization": Rule(account_name),
}
_KEY_EXTENDED = {**_KEY, "scopes": Rule(scopes_in(EXTENDED_SCOPES))}
_ACCOUNT = {
    "plan": Rule(one_of(PLANS)),
    **dict.fromkeys(NUMBERS, Rule(number_or_plan)),
    "requests_per_minute": Rule(requests_per_minute_limit),
    "view_protection": Rule(switch),
    "zero_knowledge_enrolled": Rule(switch),
    "zero_knowledge_feature": Rule(switch),
    "at_once": Rule(switch),
}


def read_members(rules: Mapping[str, Rule], http_request: HttpRequest) -> dict[str, Any]:
    members = read_object(http_request.body)
    reasons = rejected(rules, members)
    # Unlike in the API, an unknown member is an error: it is probably misspelt.
    reasons |= {name: "is not known here" for name in members if name not in rules}
    if reasons:
        raise RefusalError(json_response(400, {"message": "rejected", "members": reasons}))
    return {name: value for name, value in members.items() if value is not None}


def create_key(service: RehearsedService, http_request: HttpRequest) -> Response:
    """POST /rehearsal/keys, with the defaults of the app's form.

    They are `shares:write` and custody `self`.
    """
    members = read_members(_KEY_EXTENDED if service.extended else _KEY, http_request)
    key = Key(
        key_id=members["key_id"].strip(),
        account=members.get("account", DEFAULT_ACCOUNT),
        name=members["name"].strip(),
        auth_sha256=members["auth_sha256"].strip(),
        scopes=frozenset(members.get("scopes", FORM_SCOPES)),
        custody_requested=CUSTODY_LEVELS[members.get("custody", FORM_CUSTODY)],
        custody_public_key=members.get("custody_public_key"),
        created_at=service.clock.timestamp(),
        last_used_at=None,
        revoked_at=None,
        compromised_at=None,
        organization=members.get("organization"),
        custody_sha256=members.get("custody_sha256", "").strip() or None,
    )

    try:
        administration.add_key(service.store, key)
    except administration.KeyExistsError:
        return json_response(409, {"message": "a key with this id exists"})
    except administration.NoAccessError:
        refuse("no_api_access")
    except QuotaError:
        refuse("key_allowance")
    except CompromisedError:
        return _COMPROMISED
    if key.custody_sha256:
        service.custody_digests.add(bytes.fromhex(key.custody_sha256))
    return json_response(201, _key_json(key))


_COMPROMISED = json_response(409, {"message": "this secret was compromised: create a new key"})
"""To a secret or a custody public key that was ever compromised (gaps: compromise)."""


_NO_KEY = json_response(404, {"message": "the key does not exist"})


def list_keys(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/keys"""
    return json_response(
        200, {"keys": [_key_json(key_from(row)) for row in service.store.list_keys()]}
    )


def revoke_key(
    service: RehearsedService,
    http_request: HttpRequest,  # noqa: ARG001
    key_id: str,
) -> Response:
    """POST /rehearsal/keys/{key_id}/revoke"""
    service.store.revoke(key_id)
    return _show(service.store.key(key_id))


def grant_custody(
    service: RehearsedService,
    http_request: HttpRequest,  # noqa: ARG001
    key_id: str,
) -> Response:
    """POST /rehearsal/keys/{key_id}/grant: approval by one of the account holder's devices."""
    try:
        key = administration.approve_custody(service.store, key_id)
    except administration.NotRequestedError:
        return json_response(
            409,
            {"message": "the key did not request custody account, or has no registered public key"},
        )
    return _NO_KEY if key is None else json_response(200, _key_json(key))


def register_custody(service: RehearsedService, http_request: HttpRequest, key_id: str) -> Response:
    """POST /rehearsal/keys/{key_id}/custody: register its key, which raises the level."""
    rules = {"custody_public_key": Rule(p256_point, required=True)}
    public_key = read_members(rules, http_request)["custody_public_key"]
    try:
        return _show(service.store.register_custody(key_id, public_key))
    except CompromisedError:
        # A compromised key can only be replaced: what it would register belongs to the secret that
        # was sent.
        return _COMPROMISED


def _show(row: Row | None) -> Response:
    if row is None:
        return _NO_KEY
    return json_response(200, _key_json(key_from(row)))


def set_account(service: RehearsedService, http_request: HttpRequest, name: str) -> Response:
    """POST /rehearsal/accounts/{name}: change the given members; `org:NAME` is an organisation.

    Calls see the change within 30 s, as at the real service, or at once with `at_once`.
    """
    members = read_members(_ACCOUNT, http_request)
    at_once = members.pop("at_once", False)
    account = administration.change_account(service.store, name, members, at_once=at_once)
    return json_response(
        200, asdict(account) | {"limits": asdict(account.limits), "api_access": account.api_access}
    )


def _key_json(key: Key) -> dict[str, object]:
    return {
        "key_id": key.key_id,
        "account": key.account,
        "organization": key.organization,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "custody_requested": _LEVEL_NAMES[key.custody_requested],
        "custody_effective": _LEVEL_NAMES[key.custody_level],
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "compromised_at": key.compromised_at,
        "granted_at": key.granted_at,
    }
