"""API keys: the bearer header, scopes, custody levels (specification: Authentication)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from sqlite3 import Row

from .plans import ORGANIZATION
from .store import Store

# Matching is exact. `webhooks:manage` is reserved: it can be chosen and gates nothing.
SCOPES = (
    "shares:read",
    "shares:write",
    "requests:read",
    "requests:write",
    "stats:read",
    "webhooks:manage",
)
EXTENDED_SCOPES = (*SCOPES, "audit:read")
"""Scopes of a service with an access log (gaps: newer endpoints)."""
CUSTODY_LEVELS: Mapping[str, int] = {"none": 0, "self": 1, "account": 2}
MAX_NAME = 256
FORM_SCOPES, FORM_CUSTODY = ("shares:write",), "self"
"""Defaults of the key-creation form."""

_KEY_ID = r"[A-Za-z0-9_-]{16}"
_RANDOM_PART = r"[A-Za-z0-9_-]{43}"
_DUMMY_HASH = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Key:
    """An API key as the service stores it. Of the auth secret, only the SHA-256 (hex) is stored."""

    key_id: str
    account: str
    name: str
    auth_sha256: str
    scopes: frozenset[str]
    custody_requested: int
    custody_public_key: str | None
    created_at: float
    last_used_at: float | None
    revoked_at: float | None
    compromised_at: float | None
    organization: str | None = None
    granted_at: float | None = None
    custody_sha256: str | None = None
    """The SHA-256 (hex) of the custody secret, for `log_redaction`; None if the service
    was not told.
    """

    @property
    def space(self) -> str:
        """The owner of the shares and requests that the key can use.

        Its organisation if any, otherwise its account.
        """
        return self.account if self.organization is None else ORGANIZATION + self.organization

    @property
    def custody_level(self) -> int:
        """The effective level: 0 until the custody public key is registered, then `self`.

        `account` needs the approval of one of the account holder's devices, which no API key can
        give.
        """
        if self.custody_public_key is None:
            return 0
        return min(self.custody_requested, 1 if self.granted_at is None else 2)


@dataclass(frozen=True)
class PresentedCredential:
    """A credential as received.

    The custody part is dropped; of it is known only if it came, and looked like one.
    """

    key_id: str
    auth_secret: str
    three_parts: bool
    custody_form: bool


def parse_bearer(header: str, tag: str) -> PresentedCredential | None:
    """Parse the credential in an Authorization header; None if it is malformed."""
    prefix = f"Bearer {tag}_sk_live_"
    if not header.startswith(prefix):
        return None
    key_id, _, rest = header.removeprefix(prefix).partition(".")
    auth_secret, dot, custody = rest.partition(".")
    if not re.fullmatch(_KEY_ID, key_id):
        return None
    if not dot and not re.fullmatch(_RANDOM_PART, auth_secret):
        return None
    return PresentedCredential(
        key_id, auth_secret, bool(dot), bool(re.fullmatch(_RANDOM_PART, custody))
    )


def secret_matches(key: Key | None, auth_secret: str) -> bool:
    """Return whether an auth secret is the key's. Takes constant time, even for an unknown key."""
    sent_hash = hashlib.sha256(auth_secret.encode("utf-8", "surrogateescape")).hexdigest()
    known_hash = _DUMMY_HASH if key is None else key.auth_sha256
    return hmac.compare_digest(sent_hash, known_hash) and key is not None


def find_key(store: Store, key_id: str) -> Key | None:
    """Return the key with this id, revoked or not."""
    row = store.row("SELECT * FROM keys WHERE key_id = :key_id", {"key_id": key_id})
    return None if row is None else _key(row)


def is_compromised(store: Store, key: Key) -> bool:
    """Return whether a secret or the public key of this key is one of a compromised key.

    Gaps: compromise.
    """
    row = store.row(
        """SELECT 1 FROM keys WHERE compromised_at IS NOT NULL
           AND (auth_sha256 = :auth_sha256 OR custody_public_key = :custody_public_key
                OR custody_sha256 = :custody_sha256)""",
        {
            name: getattr(key, name)
            for name in ("auth_sha256", "custody_public_key", "custody_sha256")
        },
    )
    return row is not None


def load_keys(store: Store) -> list[Key]:
    """Return all keys, oldest first, including revoked ones."""
    return [_key(row) for row in store.rows("SELECT * FROM keys ORDER BY created_at, rowid", {})]


def count_active_keys(store: Store, account: str, organization: str | None) -> int:
    """Count the used slots of a key allowance. A revoked key uses none."""
    rows = store.rows(
        """SELECT COUNT(*) FROM keys WHERE revoked_at IS NULL
           AND organization IS :organization
           AND (:organization IS NOT NULL OR account = :account)""",
        {"account": account, "organization": organization},
    )
    return int(rows[0][0])


def add_key(store: Store, key: Key) -> None:
    """Store a new key."""
    store.change(
        """INSERT INTO keys VALUES (:key_id, :account, :organization, :name, :auth_sha256, :scopes,
           :custody_requested, :custody_public_key, :created_at, :last_used_at, :revoked_at,
           :compromised_at, :granted_at, :custody_sha256)""",
        {**vars(key), "scopes": json.dumps(sorted(key.scopes))},
    )


# Only the first compromise, grant and revocation are recorded.
_UPDATES = {
    "used": "UPDATE keys SET last_used_at = :value WHERE key_id = :key_id",
    # Revoking also removes the key's account-custody envelope.
    "revoked": (
        "UPDATE keys SET revoked_at = :value, granted_at = NULL WHERE key_id = :key_id AND "
        "revoked_at IS NULL"
    ),
    "granted": "UPDATE keys SET granted_at = :value WHERE key_id = :key_id AND granted_at IS NULL",
    "compromised": """UPDATE keys SET compromised_at = :value
                      WHERE key_id = :key_id AND compromised_at IS NULL""",
    "custody": "UPDATE keys SET custody_public_key = :value WHERE key_id = :key_id",
}


def mark_key(store: Store, key_id: str, field: str, value: float | str) -> bool:
    """Record that a key was used, revoked or compromised, or that its custody key was registered.

    Whether it is new.
    """
    return store.change(_UPDATES[field], {"key_id": key_id, "value": value}) > 0


def _key(row: Row) -> Key:
    values = dict(row)
    return Key(**{**values, "scopes": frozenset(json.loads(values["scopes"]))})
