"""Webhook endpoints, their signatures (gaps: webhook signature) and the queue of events.

Specification: Events.

Notices by e-mail have endpoints, too, and wait in the same queue: see `mail`.

An endpoint belongs to an account, never to an organisation: an event goes to the owner of its
share.
"""

from __future__ import annotations

import base64
import hmac
import re
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urlsplit

from .addresses import is_loopback
from .database.access import Row
from .database.decisions import QuotaError, Store
from .plans import account_from

BOTH_SIGN_SECONDS = 24 * 60 * 60
"""How long the previous secret also signs after a rotation."""

SIGNATURE_HEADER = "X-Service-Signature"
"""Default header of the signature; at the real service its name contains the service's."""

MAX_URL = 2048
MAIL = "mailto:"
"""How the URL of an endpoint begins that notices go to, by e-mail. It signs nothing."""
NO_SECRET = ""
_URL = re.compile(r"[\x21-\x7e]+", re.ASCII)


class SealError(Exception):
    """The secret of this endpoint was sealed under another key."""


class Seals(Protocol):
    """How secrets are kept in the database."""

    def seal(self, secret: str, endpoint: str, /) -> str:
        """Return what is stored for an endpoint's secret."""

    def open(self, stored: str, endpoint: str, /) -> str:
        """Return the secret. Raises SealError."""


class Unsealed:
    """They are kept as they are."""

    def seal(self, secret: str, _: str) -> str:
        """Return what is stored for an endpoint's secret."""
        return secret

    def open(self, stored: str, _: str) -> str:
        """Return the secret."""
        return stored


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

    @property
    def mail_address(self) -> str | None:
        """The address of e-mail, if it is an endpoint for notices."""
        return self.url.removeprefix(MAIL) if self.url.startswith(MAIL) else None

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
    if parts.scheme == "http" and not is_loopback(host):
        return "must be https, as it is not on this machine"
    return None


def add(
    store: Store, account: str, url: str, token: bytes, secret: bytes, seals: Seals
) -> Endpoint:
    """Add an endpoint with an id made from `token` and a secret of 32 bytes.

    Raises CapacityError.
    """

    def allowed(plan: Row | None) -> int:  # by the current plan, not by the one that calls see
        current = account_from(account, plan)
        return current.limits.webhooks if current.api_access else 0

    def values(now: float) -> dict[str, object]:
        name = f"wh_{_base64url(token)}"
        stored = seals.seal(new_secret(secret), name)
        return vars(Endpoint(name, account, url, now, stored))

    try:
        row = store.add_webhook(account, values, allowed)
    except QuotaError as error:
        message = f"the plan allows {error.args[0]} webhook endpoints"
        raise CapacityError(message) from None
    assert row is not None  # noqa: S101  # it was added in the same transaction
    return replace(endpoint_from(row), secret=new_secret(secret))


def new_secret(random: bytes) -> str:
    """Return a secret as text; this text is the signing key."""
    return f"whsec_{_base64url(random)}"


def endpoints(store: Store, account: str | None = None) -> list[Endpoint]:
    """Return an account's endpoints, or all, oldest first."""
    return [endpoint_from(row) for row in store.webhooks(account)]


def add_mail(store: Store, account: str, address: str, token: bytes) -> Endpoint:
    """Let an account's notices go to an address of e-mail, which was checked."""
    name, url = f"mail_{_base64url(token)}", f"{MAIL}{address}"
    return endpoint_from(
        store.add_mail(lambda now: vars(Endpoint(name, account, url, now, NO_SECRET)))
    )


def mail_endpoints(store: Store) -> list[Endpoint]:
    """Return where notices go, oldest first."""
    return [endpoint_from(row) for row in store.mail()]


def find(store: Store, name: str) -> Endpoint | None:
    """Return the endpoint with this id, or None."""
    row = store.webhook(name)
    return None if row is None else endpoint_from(row)


def rotate(store: Store, name: str, random: bytes, seals: Seals) -> Endpoint | None:
    """Create a new secret; the previous one also signs for 24 hours.

    None if the endpoint does not exist.
    """
    secret = new_secret(random)
    row = store.rotate_webhook(name, seals.seal(secret, name))
    return None if row is None else replace(endpoint_from(row), secret=secret)


def open_secrets(endpoint: Endpoint, seals: Seals) -> Endpoint:
    """Return an endpoint that can sign. Raises SealError."""
    previous = endpoint.previous_secret
    return replace(
        endpoint,
        secret=seals.open(endpoint.secret, endpoint.id),
        previous_secret=None if previous is None else seals.open(previous, endpoint.id),
    )


def endpoint_from(row: Row) -> Endpoint:
    """Return an endpoint from its row, with its secrets as they are stored."""
    return Endpoint(**{name: row[name] for name in Endpoint.__dataclass_fields__})


def _base64url(random: bytes) -> str:
    return base64.urlsafe_b64encode(random).decode("ascii").rstrip("=")
