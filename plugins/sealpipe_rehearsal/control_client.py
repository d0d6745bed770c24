"""A client of a running rehearsal's other routes: the control API and the routes behind its links.

Plain HTTP to loopback, never through a proxy: http.client is enough.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict
from urllib.parse import quote, urlsplit

from sealpipe.secret import Secret
from sealpipe_service.credentials import FORM_SCOPES, SCOPES

__all__ = ["FORM_SCOPES", "SCOPES", "RehearsalError", "register_key"]

SERVICE_NAME = "sealpipe rehearsal"
"""What `GET /rehearsal` says: no other program does."""

_TIMEOUT_SECONDS = 30


class RehearsalError(Exception):
    """The rehearsal refused a call or did not respond.

    `status` is None if there was no response.
    """

    def __init__(
        self, message: str, *, status: int | None = None, error_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


def send_request(base: str, method: str, path: str, members: object = None) -> tuple[int, Any]:
    """Send one request; return the status and the JSON (or text) of the response.

    `base` is any URL of the service, such as `http://127.0.0.1:8080/v1`; `path` starts at the root.
    Raises RehearsalError if the URL is not on loopback or nothing responds.
    """
    address = urlsplit(base)
    if address.scheme != "http" or address.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise RehearsalError(f"a rehearsal has an http:// URL on this machine only, not {base}")
    body = None if members is None else json.dumps(members).encode("utf-8")
    connection = http.client.HTTPConnection(
        address.hostname, address.port, timeout=_TIMEOUT_SECONDS
    )
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        text = response.read().decode("utf-8")
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(text) if is_json else text
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RehearsalError(f"no rehearsal responds at {address.netloc}: {error}") from error
    finally:
        connection.close()


def call_control_api(base: str, method: str, path: str, members: object = None) -> Any:
    """Call /rehearsal{path} and return the JSON object.

    Raises RehearsalError with the service's reasons.
    """
    status, value = send_request(base, method, "/rehearsal" + path, members)
    if status not in (200, 201) or not isinstance(value, dict):
        members = value if isinstance(value, dict) else {}
        reasons = "; ".join(
            f"{name} {reason}" for name, reason in members.get("members", {}).items()
        )
        message = reasons or members.get("message", "not a rehearsal's response")
        raise RehearsalError(
            f"{message} (HTTP {status})", status=status, error_code=members.get("error_code")
        )
    return value


class KeyOptions(TypedDict, total=False):
    """The options of `register_key`, for functions that pass them on."""

    scopes: Iterable[str] | None
    custody: str
    register: bool
    account: str
    organization: str | None


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
    """Create a key, register it at a running service, and return the full three-part credential.

    `scopes` None means every scope of the service; `custody` is `none`, `self` or `account`. With
    `register=False` the custody public key is not sent, so the effective level stays `none`.
    `organization` makes it a team key, which acts inside that organisation. The secrets never leave
    this process. Raises RehearsalError, with `error_code` 98 or 100 if the plan does not allow
    another key.
    """
    from sealpipe.minting import mint  # here, so that other calls do not load cryptography

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
            "custody_public_key": minted.custody_public_key
            if register and custody != "none"
            else None,
            "custody_sha256": minted.custody_sha256,
            "account": account,
            "organization": organization,
        },
    )
    return minted.credential


def set_account(
    base: str, name: str = "default", *, at_once: bool = True, **changes: str | bool | int
) -> dict[str, Any]:
    """Change an account, or an organisation named `org:NAME`, and return its new state.

    Changes: `plan` (business, enterprise, none); `requests_per_minute`, `api_keys`, `webhooks`,
    `shares` (a number, or "plan" for the plan's own; the rate may be "unset" or "unlimited");
    `view_protection`, `zero_knowledge_enrolled`, `zero_knowledge_feature`. With `at_once=False`
    calls see a change up to 30 s later, as at the real service.
    """
    members = {**changes, "at_once": at_once}
    changed: dict[str, Any] = call_control_api(
        base, "POST", f"/accounts/{quote(name, safe='')}", members
    )
    return changed


def list_keys(base: str) -> list[dict[str, Any]]:
    """All API keys, oldest first, including revoked ones."""
    keys: list[dict[str, Any]] = call_control_api(base, "GET", "/keys")["keys"]
    return keys


def grant_custody(base: str, key_id: str) -> dict[str, Any]:
    """Approve custody `account` for a key that requested it, like one of the holder's devices."""
    granted: dict[str, Any] = call_control_api(
        base, "POST", f"/keys/{quote(key_id, safe='')}/grant"
    )
    return granted


def revoke_key(base: str, key_id: str) -> dict[str, Any]:
    """Revoke a key. Its next call is refused."""
    revoked: dict[str, Any] = call_control_api(
        base, "POST", f"/keys/{quote(key_id, safe='')}/revoke"
    )
    return revoked


@dataclass(frozen=True)
class Webhook:
    """A webhook endpoint just created or rotated.

    `secret` is shown only now; `header` carries the signature.
    """

    id: str
    url: str
    header: str
    secret: Secret = field(repr=False)


def add_webhook(base: str, url: str, *, account: str = "default") -> Webhook:
    """Add an endpoint for an account's events.

    Raises RehearsalError if the plan or the URL does not allow it.
    """
    return _webhook(call_control_api(base, "POST", "/webhooks", {"url": url, "account": account}))


def rotate_webhook(base: str, webhook_id: str) -> Webhook:
    """Create a new secret for an endpoint. For 24 hours the previous secret also signs."""
    return _webhook(
        call_control_api(base, "POST", f"/webhooks/{quote(webhook_id, safe='')}/rotate")
    )


def remove_webhook(base: str, webhook_id: str) -> None:
    """Remove an endpoint and its pending deliveries."""
    call_control_api(base, "DELETE", f"/webhooks/{quote(webhook_id, safe='')}")


def list_webhooks(base: str) -> dict[str, Any]:
    """Return `webhooks`, oldest first and without secrets, and `signature_header`."""
    members: dict[str, Any] = call_control_api(base, "GET", "/webhooks")
    return members


def _webhook(members: Mapping[str, Any]) -> Webhook:
    return Webhook(
        members["id"], members["url"], members["signature_header"], Secret(members["secret"])
    )


def list_scopes(base: str) -> list[str]:
    """List every scope that a key of this service can have."""
    known: list[str] = call_control_api(base, "GET", "")["scopes"]
    return known


def advance_clock(base: str, seconds: float) -> None:
    """Move the service's clock forward."""
    call_control_api(base, "POST", "/clock", {"advance_seconds": seconds})


def set_faults(base: str, rows: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Replace the fault plan and return its rows; without rows, remove the plan."""
    plan = {"faults": [dict(row) for row in rows]}
    members: list[dict[str, Any]] = call_control_api(base, "PUT", "/faults", plan)["faults"]
    return members


def list_faults(base: str) -> list[dict[str, Any]]:
    """List the rows of the fault plan, each with its numbers of requests: `applied` and `left`."""
    members: list[dict[str, Any]] = call_control_api(base, "GET", "/faults")["faults"]
    return members


def reset(base: str) -> None:
    """Delete all data of the service."""
    call_control_api(base, "POST", "/reset")
