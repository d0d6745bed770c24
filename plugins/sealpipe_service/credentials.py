"""API keys: the bearer header, scopes, custody levels (specification: Authentication)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .database.access import Row
from .plans import ORGANIZATION

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

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_RANDOM_PART = re.compile(r"[A-Za-z0-9_-]{43}")
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
    if not _KEY_ID.fullmatch(key_id):
        return None
    if not dot and not _RANDOM_PART.fullmatch(auth_secret):
        return None
    return PresentedCredential(
        key_id, auth_secret, bool(dot), bool(_RANDOM_PART.fullmatch(custody))
    )


def secret_matches(key: Row | None, auth_secret: str) -> bool:
    """Return whether an auth secret is the key's. Takes constant time, even for an unknown key."""
    sent_hash = hashlib.sha256(auth_secret.encode("utf-8", "surrogateescape")).hexdigest()
    known_hash = _DUMMY_HASH if key is None else key["auth_sha256"]
    return hmac.compare_digest(sent_hash, known_hash) and key is not None


def key_from(row: Row) -> Key:
    """Return a key from its row."""
    columns = {name: row[name] for name in Key.__dataclass_fields__}
    return Key(**{**columns, "scopes": _read_scopes(columns["scopes"])})


@lru_cache(1024)
def _read_scopes(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))


def columns_of(key: Key) -> dict[str, object]:
    """Return the columns of a key's row."""
    return {**vars(key), "space": key.space, "scopes": json.dumps(sorted(key.scopes))}
