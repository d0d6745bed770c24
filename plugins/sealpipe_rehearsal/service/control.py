"""The control door: what only the rehearsal has. Outside /v1, on loopback, closed to browsers.

Keys are registered here the way the signed-in app does it: the secrets are made elsewhere, and only the
SHA-256 of the auth secret and the custody public key arrive.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from sqlite3 import IntegrityError
from typing import Any

from .clock import format_rfc3339
from .context import Incoming, Service
from .credentials import CUSTODY_LEVELS, MAX_NAME, SCOPES, Key, add_key, all_keys, find_key, mark
from .plans import DEFAULT_ACCOUNT, PLANS, Account, account_of, save_account
from .refusals import Answer, Refused, answer
from .rules import Check, Rule, matching, read_object, rejected, text

_LEVEL_NAMES = {level: name for name, level in CUSTODY_LEVELS.items()}


def one_of(names: Mapping[str, object]) -> Check:
    """One of some words."""
    return lambda value: None if value in list(names) else f"must be one of {', '.join(names)}"


def name_of_key(value: object) -> str | None:
    """A key's name: up to 256 characters, and at least one."""
    fits = isinstance(value, str) and 0 < len(value) <= MAX_NAME
    return text(value) or (None if fits else f"must have 1 to {MAX_NAME} characters")


def scopes(value: object) -> str | None:
    """A set of known scopes; none at all is allowed, and then every endpoint refuses the key."""
    known = isinstance(value, list) and all(scope in SCOPES for scope in value)
    return None if known else f"must be an array of {', '.join(SCOPES)}"


def switch(value: object) -> str | None:
    """On or off."""
    return None if isinstance(value, bool) else "must be true or false"


def seconds(value: object) -> str | None:
    """A time that passes: time goes one way."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if number and 0 <= float(str(value)) <= 1e9 else "must be a number of seconds from 0 to 1e9"


def custody_public_key(value: object) -> str | None:
    """base64url of an uncompressed P-256 point (specification: Custody public key, step 4)."""
    reason = "must be base64url of a 65-byte uncompressed P-256 point"
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{87}", value, re.ASCII):
        return reason
    point = base64.urlsafe_b64decode(value + "=")
    x, y = int.from_bytes(point[1:33]), int.from_bytes(point[33:])
    on_curve = x < _P and y < _P and (y * y - (x * x * x - 3 * x + _B)) % _P == 0
    return None if point[0] == 4 and on_curve else reason


_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B

_KEY = {
    "key_id": Rule(matching(r"[A-Za-z0-9_-]{16}", "must be 16 characters of base64url"), required=True),
    "auth_sha256": Rule(matching(r"[0-9a-f]{64}", "must be SHA-256 in lower-case hex"), required=True),
    "name": Rule(name_of_key, required=True),
    "scopes": Rule(scopes, required=True),
    "custody": Rule(one_of(CUSTODY_LEVELS)),
    "custody_public_key": Rule(custody_public_key),
    "account": Rule(name_of_key),
}
_ACCOUNT = {
    "plan": Rule(one_of(PLANS)),
    "view_protection": Rule(switch),
    "zero_knowledge_enrolled": Rule(switch),
    "zero_knowledge_feature": Rule(switch),
}


def handle(service: Service, incoming: Incoming) -> Answer:
    """Answer a call at the control door."""
    path = incoming.segments[1:]
    for (method, pattern), handler in _ROUTES.items():
        if method == incoming.method and len(pattern) == len(path):
            pairs = list(zip(pattern, path, strict=True))
            if all(want in ("*", got) for want, got in pairs):
                names = [got for want, got in pairs if want == "*"]
                try:
                    return handler(service, incoming, *names)
                except Refused as refused:
                    return refused.answer
    return answer(404, {"message": "the control door has no such route"})


def _members(rules: Mapping[str, Rule], incoming: Incoming) -> dict[str, Any]:
    members = read_object(incoming.body)
    reasons = rejected(rules, members)
    # Unlike the API, the door belongs to us: a misspelt member is an error.
    reasons |= {name: "is not known here" for name in members if name not in rules}
    if reasons:
        raise Refused(answer(400, {"message": "rejected", "members": reasons}))
    return {name: value for name, value in members.items() if value is not None}


def about(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # one shape for the table
    """GET /rehearsal"""
    now = format_rfc3339(service.clock.now())
    return answer(200, {"service": "sealpipe rehearsal", "service_tag": service.tag, "now": now})


def create_key(service: Service, incoming: Incoming) -> Answer:
    """POST /rehearsal/keys"""
    members = _members(_KEY, incoming)
    key = Key(
        key_id=members["key_id"].strip(),
        account=members.get("account", DEFAULT_ACCOUNT),
        name=members["name"],
        auth_sha256=members["auth_sha256"].strip(),
        scopes=frozenset(members["scopes"]),
        custody_requested=CUSTODY_LEVELS[members.get("custody", "none")],
        custody_public_key=members.get("custody_public_key"),
        created_at=service.clock.timestamp(),
        last_used_at=None,
        revoked_at=None,
        compromised_at=None,
    )
    with service.store.transaction():
        save_account(service.store, account_of(service.store, key.account))
        try:
            add_key(service.store, key)
        except IntegrityError:
            return answer(409, {"message": "there is a key with this id"})
    return answer(201, _shown(key))


def list_keys(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # one shape for the table
    """GET /rehearsal/keys"""
    return answer(200, {"keys": [_shown(key) for key in all_keys(service.store)]})


def revoke_key(service: Service, incoming: Incoming, key_id: str) -> Answer:  # noqa: ARG001  # as above
    """POST /rehearsal/keys/{key_id}/revoke"""
    return _marked(service, key_id, "revoked", service.clock.timestamp())


def register_custody(service: Service, incoming: Incoming, key_id: str) -> Answer:
    """POST /rehearsal/keys/{key_id}/custody: raises the effective level of a key that asked for one."""
    rules = {"custody_public_key": replace(_KEY["custody_public_key"], required=True)}
    return _marked(service, key_id, "custody", _members(rules, incoming)["custody_public_key"])


def _marked(service: Service, key_id: str, what: str, value: float | str) -> Answer:
    mark(service.store, key_id, what, value)
    key = find_key(service.store, key_id)
    return answer(404, {"message": "there is no such key"}) if key is None else answer(200, _shown(key))


def set_account(service: Service, incoming: Incoming, name: str) -> Answer:
    """POST /rehearsal/accounts/{name}: the members that are given change."""
    members = _members(_ACCOUNT, incoming)
    with service.store.transaction():
        account: Account = replace(account_of(service.store, name), **members)
        save_account(service.store, account)
    return answer(200, asdict(account))


def advance_clock(service: Service, incoming: Incoming) -> Answer:
    """POST /rehearsal/clock"""
    rules = {"advance_seconds": Rule(seconds, required=True)}
    service.clock.advance(_members(rules, incoming)["advance_seconds"])
    return answer(200, {"now": format_rfc3339(service.clock.now())})


def reset(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # one shape for the table
    """POST /rehearsal/reset: forgets accounts, keys, shares, records and log, and the clock's advance."""
    service.store.clear()
    service.log.clear()
    service.clock.reset()
    return answer(200, {"reset": True})


def read_log(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # one shape for the table
    """GET /rehearsal/log"""
    return answer(
        200,
        {
            "requests": [
                {
                    "at": format_rfc3339(seen.at),
                    "method": seen.method,
                    "target": seen.target,
                    "headers": [list(pair) for pair in seen.headers],
                    "body_base64": base64.b64encode(seen.body).decode("ascii"),
                }
                for seen in service.log.seen()
            ],
            "events": [
                {"at": format_rfc3339(event.at), "account": event.account, "payload": dict(event.payload)}
                for event in service.log.events()
            ],
            "notes": [
                {"at": format_rfc3339(note.at), "what": note.what, "about": note.about} for note in service.log.notes()
            ],
        },
    )


def _shown(key: Key) -> dict[str, object]:
    return {
        "key_id": key.key_id,
        "account": key.account,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "custody_requested": _LEVEL_NAMES[key.custody_requested],
        "custody_effective": _LEVEL_NAMES[key.custody_level],
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "compromised_at": key.compromised_at,
    }


_ROUTES: Mapping[tuple[str, tuple[str, ...]], Callable[..., Answer]] = {
    ("GET", ()): about,
    ("POST", ("keys",)): create_key,
    ("GET", ("keys",)): list_keys,
    ("POST", ("keys", "*", "revoke")): revoke_key,
    ("POST", ("keys", "*", "custody")): register_custody,
    ("POST", ("accounts", "*")): set_account,
    ("POST", ("clock",)): advance_clock,
    ("POST", ("reset",)): reset,
    ("GET", ("log",)): read_log,
}
