"""Webhook endpoints, their signatures (gaps: webhook signature) and the queue of events.

Specification: Events.

An endpoint belongs to an account, never to an organisation: an event goes to the owner of its
share.
"""

from __future__ import annotations

import base64
import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from sqlite3 import Row
from urllib.parse import urlsplit

from .plans import load_account
from .responses import as_json
from .store import Store

BOTH_SIGN_SECONDS = 24 * 60 * 60
"""How long the previous secret also signs after a rotation."""

SIGNATURE_HEADER = "X-Service-Signature"
"""Default header of the signature; at the real service its name contains the service's."""

MAX_URL = 2048
_URL = re.compile(r"[\x21-\x7e]+", re.ASCII)


class CapacityError(Exception):
    """The account's plan does not allow another endpoint."""


@dataclass(frozen=True)
class Endpoint:
    """One webhook endpoint.

    `previous_secret` is the secret before the last rotation, at `rotated_at`.
    """

    id: str
    account: str
    url: str
    created_at: float
    secret: str = field(repr=False)
    previous_secret: str | None = field(default=None, repr=False)
    rotated_at: float | None = None

    def previous_secret_until(self, now: float) -> float | None:
        """Return the time until which both secrets sign; None if only one does."""
        if self.previous_secret is None or self.rotated_at is None:
            return None
        until = self.rotated_at + BOTH_SIGN_SECONDS
        return until if now < until else None

    def signature(self, body: bytes, now: float) -> str:
        """Return the signature header for a body sent now: `t=<unix>,v1=<hex>[,v1=<hex>]`."""
        stamp = str(int(now))
        secrets = [
            self.secret,
            *([self.previous_secret or ""] if self.previous_secret_until(now) else []),
        ]
        signed = stamp.encode("ascii") + b"." + body
        digests = [
            hmac.new(secret.encode("ascii"), signed, "sha256").hexdigest() for secret in secrets
        ]
        return ",".join([f"t={stamp}", *(f"v1={digest}" for digest in digests)])


def endpoint_url(value: object) -> str | None:
    """Check an endpoint's URL: https, or http to this machine."""
    if not isinstance(value, str) or len(value) > MAX_URL or not _URL.fullmatch(value):
        return f"must be an address of up to {MAX_URL} printable ASCII characters"
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "must be an address"
    if port == 0 or not host or parts.scheme not in ("http", "https"):
        return "must begin with https:// and a host (or with http:// and this machine)"
    if "@" in parts.netloc or "#" in value:
        return "must have no user and no fragment"
    if parts.scheme == "http" and not _is_loopback(host):
        return "must be https, as it is not on this machine"
    return None


def add(store: Store, account: str, url: str, token: bytes, secret: bytes, now: float) -> Endpoint:
    """Add an endpoint with an id made from `token` and a secret of 32 bytes.

    Raises CapacityError.
    """
    limits = load_account(store, account).limits  # the current plan, not the cached one
    with store.transaction():
        used = len(endpoints_of(store, account))
        allowed = limits.webhooks if limits.api_access else 0
        if used >= allowed:
            raise CapacityError(f"the plan allows {allowed} webhook endpoints")
        endpoint = Endpoint(f"wh_{_base64url(token)}", account, url, now, new_secret(secret))
        store.change(
            (
                "INSERT INTO webhooks (id, account, url, created_at, secret) VALUES (:id, "
                ":account, :url, :now, :secret)"
            ),
            {
                "id": endpoint.id,
                "account": account,
                "url": url,
                "now": now,
                "secret": endpoint.secret,
            },
        )
    return endpoint


def new_secret(random: bytes) -> str:
    """Return a secret as text; this text is the signing key."""
    return f"whsec_{_base64url(random)}"


def all_endpoints(store: Store) -> list[Endpoint]:
    """Return all endpoints, oldest first."""
    return [_endpoint(row) for row in store.rows("SELECT * FROM webhooks ORDER BY number", {})]


def endpoints_of(store: Store, account: str) -> list[Endpoint]:
    """Return an account's endpoints, oldest first."""
    rows = store.rows(
        "SELECT * FROM webhooks WHERE account = :account ORDER BY number", {"account": account}
    )
    return [_endpoint(row) for row in rows]


def find(store: Store, name: str) -> Endpoint | None:
    """Return the endpoint with this id, or None."""
    row = store.row("SELECT * FROM webhooks WHERE id = :id", {"id": name})
    return None if row is None else _endpoint(row)


def rotate(store: Store, name: str, random: bytes, now: float) -> Endpoint | None:
    """Create a new secret; the previous one also signs for 24 hours.

    None if the endpoint does not exist.
    """
    changed = store.change(
        (
            "UPDATE webhooks SET previous_secret = secret, secret = :secret, rotated_at = :now "
            "WHERE id = :id"
        ),
        {"id": name, "secret": new_secret(random), "now": now},
    )
    return find(store, name) if changed else None


def remove(store: Store, name: str) -> bool:
    """Remove an endpoint and its pending deliveries; return whether it existed."""
    with store.transaction():
        store.change("DELETE FROM deliveries WHERE webhook = :id", {"id": name})
        return store.change("DELETE FROM webhooks WHERE id = :id", {"id": name}) == 1


MAX_FINISHED = 2_000
"""The number of finished deliveries to keep."""

_INSERT_DELIVERY = (
    "INSERT INTO deliveries (webhook, body, created_at, due) VALUES (:webhook, :body, :now, :now)"
)
_DELETE_OLD_DELIVERIES = """
DELETE FROM deliveries WHERE due IS NULL AND number <= (SELECT MAX(number) FROM deliveries) - :kept
"""


def queue_event(store: Store, account: str, payload: Mapping[str, object], now: float) -> bool:
    """Queue an event for each endpoint of its account, in the caller's transaction.

    Return whether there is any.

    Webhooks share the API's plan entitlement: without it nothing is sent.
    """
    endpoints = endpoints_of(store, account)
    if not endpoints or not load_account(store, account).api_access:
        return False
    for endpoint in endpoints:
        store.change(
            _INSERT_DELIVERY, {"webhook": endpoint.id, "body": as_json(dict(payload)), "now": now}
        )
    store.change(_DELETE_OLD_DELIVERIES, {"kept": MAX_FINISHED})
    return True


def _endpoint(row: Row) -> Endpoint:
    names = ("id", "account", "url", "created_at", "secret", "previous_secret", "rotated_at")
    return Endpoint(**{name: row[name] for name in names})


def _base64url(random: bytes) -> str:
    return base64.urlsafe_b64encode(random).decode("ascii").rstrip("=")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
