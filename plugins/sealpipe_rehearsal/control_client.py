"""Talking to a running rehearsal outside /v1: the control door, and the recipient's route.

Plain HTTP to loopback and never through a proxy, so the standard library's client is all it takes.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from sealpipe.secret import Secret

from .service.credentials import FORM_SCOPES, SCOPES

__all__ = ["FORM_SCOPES", "SCOPES", "RehearsalError", "register_key"]

_TIMEOUT_SECONDS = 30


class RehearsalError(Exception):
    """The rehearsal did not answer, or refused. `status` is None where there was no answer."""

    def __init__(self, message: str, *, status: int | None = None, error_code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


def send_request(base: str, method: str, path: str, members: object = None) -> tuple[int, Any]:
    """Send one request to the service that `base` belongs to; its status and its JSON (or text).

    `base` is any address of the service, such as `http://127.0.0.1:8080/v1`; `path` starts at the root.
    """
    address = urlsplit(base)
    if address.scheme != "http" or address.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise RehearsalError(f"a rehearsal is at http:// on this machine only, not at {base}")
    body = None if members is None else json.dumps(members).encode("utf-8")
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        text = response.read().decode("utf-8")
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RehearsalError(f"no rehearsal answers at {address.netloc}: {error}") from error
    finally:
        connection.close()


def call_control_api(base: str, method: str, path: str, members: object = None) -> Any:
    """The control door's answer to /rehearsal/..., or DoorError with what it says is wrong."""
    status, value = send_request(base, method, "/rehearsal" + path, members)
    if status not in (200, 201) or not isinstance(value, dict):
        members = value if isinstance(value, dict) else {}
        reasons = "; ".join(f"{name} {reason}" for name, reason in members.get("members", {}).items())
        message = reasons or members.get("message", "not a rehearsal's answer")
        raise RehearsalError(f"{message} (HTTP {status})", status=status, error_code=members.get("error_code"))
    return value


@dataclass(frozen=True)
class MintedKey:
    """A new credential, and the three values of it that a service may know."""

    credential: Secret
    key_id: str
    auth_sha256: str
    custody_public_key: str


def mint(tag: str = "svc", *, token_bytes: Callable[[int], bytes] = secrets.token_bytes) -> MintedKey:
    """Draw 12, 32 and 32 random bytes and write them as `<tag>_sk_live_<keyId>.<auth>.<custody>`.

    The service is to get the key id, the SHA-256 (hex) of the auth secret, and the custody public key
    (base64url of 65 bytes). The credential is shown to its owner once and goes nowhere else.
    """
    from sealpipe.wire import keys  # here, so that asking the door loads no cryptography

    key_id, auth_secret, custody_secret = (_base64url(token_bytes(length)) for length in (12, 32, 32))
    return MintedKey(
        credential=Secret(f"{tag}_sk_live_{key_id}.{auth_secret}.{custody_secret}"),
        key_id=key_id,
        auth_sha256=hashlib.sha256(auth_secret.encode("ascii")).hexdigest(),
        custody_public_key=_base64url(keys.from_custody_secret(custody_secret, tag=tag).public_key),
    )


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def register_key(
    base: str,
    *,
    name: str,
    scopes: Iterable[str] | None = None,
    custody: str = "self",
    register: bool = True,
    account: str = "default",
    organization: str | None = None,
) -> Secret:
    """Mint a key for a running service and register it there; the full three-part credential.

    `scopes` None is every one that the service has. `custody` is `none`, `self` or `account`.
    With `register=False` the custody public key is held back,
    so that the key's effective level stays at none. `organization` makes it a team key, which acts inside
    that organisation. The secrets never leave this process. Raises DoorError, whose `error_code` is 98 or 100
    where the plan does not allow another key.
    """
    about = call_control_api(base, "GET", "")
    minted = mint(about["service_tag"])
    call_control_api(
        base,
        "POST",
        "/keys",
        {
            "key_id": minted.key_id,
            "auth_sha256": minted.auth_sha256,
            "name": name,
            "scopes": about["scopes"] if scopes is None else list(scopes),
            "custody": custody,
            "custody_public_key": minted.custody_public_key if register and custody != "none" else None,
            "account": account,
            "organization": organization,
        },
    )
    return minted.credential


def set_account(
    base: str, name: str = "default", *, at_once: bool = True, **changes: str | bool | int
) -> dict[str, Any]:
    """Change an account, or an organisation under the name `org:NAME`; how it is now.

    `plan` (business, enterprise, none), the numbers that the operator can raise (`requests_per_minute`,
    `api_keys`, `webhooks`, `shares`: a number, or "plan" for the plan's own; a rate can be "unset"), and
    `view_protection`, `zero_knowledge_enrolled`, `zero_knowledge_feature`. With `at_once=False` calls see
    the change only when the entitlement is looked up again, up to 30 s later, as at the real service.
    """
    members = {**changes, "at_once": at_once}
    changed: dict[str, Any] = call_control_api(base, "POST", f"/accounts/{quote(name, safe='')}", members)
    return changed


def list_keys(base: str) -> list[dict[str, Any]]:
    """Every key, oldest first; revoked ones stay listed."""
    keys: list[dict[str, Any]] = call_control_api(base, "GET", "/keys")["keys"]
    return keys


def grant_custody(base: str, key_id: str) -> dict[str, Any]:
    """Approve custody `account` for a key that has asked for it, as one of its holder's devices does."""
    granted: dict[str, Any] = call_control_api(base, "POST", f"/keys/{quote(key_id, safe='')}/grant")
    return granted


def revoke_key(base: str, key_id: str) -> dict[str, Any]:
    """Revoke a key: its next call is refused."""
    revoked: dict[str, Any] = call_control_api(base, "POST", f"/keys/{quote(key_id, safe='')}/revoke")
    return revoked


@dataclass(frozen=True)
class Webhook:
    """A webhook endpoint as it was made or rotated: `secret` is shown this once, `header` is what it signs in."""

    id: str
    url: str
    header: str
    secret: Secret = field(repr=False)


def add_webhook(base: str, url: str, *, account: str = "default") -> Webhook:
    """A new endpoint for an account's events. DoorError where its plan has no room, or the address will not do."""
    return _webhook(call_control_api(base, "POST", "/webhooks", {"url": url, "account": account}))


def rotate_webhook(base: str, webhook_id: str) -> Webhook:
    """A new secret for an endpoint; the one before signs beside it for 24 hours."""
    return _webhook(call_control_api(base, "POST", f"/webhooks/{quote(webhook_id, safe='')}/rotate"))


def remove_webhook(base: str, webhook_id: str) -> None:
    """Remove an endpoint, with all that was still to be sent there."""
    call_control_api(base, "DELETE", f"/webhooks/{quote(webhook_id, safe='')}")


def list_webhooks(base: str) -> dict[str, Any]:
    """`webhooks`, oldest first and without secrets, and the name of the header that they are signed in."""
    members: dict[str, Any] = call_control_api(base, "GET", "/webhooks")
    return members


def _webhook(members: Mapping[str, Any]) -> Webhook:
    return Webhook(members["id"], members["url"], members["signature_header"], Secret(members["secret"]))


def list_scopes(base: str) -> list[str]:
    """Every scope that a key of this service can have."""
    known: list[str] = call_control_api(base, "GET", "")["scopes"]
    return known


def advance_clock(base: str, seconds: float) -> None:
    """Let time pass at the service."""
    call_control_api(base, "POST", "/clock", {"advance_seconds": seconds})


def set_faults(base: str, rows: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """This plan of faults in place of the one before (none ends it); its rows as the service has them."""
    plan = {"faults": [dict(row) for row in rows]}
    members: list[dict[str, Any]] = call_control_api(base, "PUT", "/faults", plan)["faults"]
    return members


def list_faults(base: str) -> list[dict[str, Any]]:
    """The rows of the plan, each with how many requests it was `applied` to and how many are `left`."""
    members: list[dict[str, Any]] = call_control_api(base, "GET", "/faults")["faults"]
    return members


def reset(base: str) -> None:
    """Make the service forget everything."""
    call_control_api(base, "POST", "/reset")
