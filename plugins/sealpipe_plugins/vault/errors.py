"""Maps Vault's errors.

Its own text is never shown: it may quote the request, or a database's address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hvac.exceptions import VaultError

from sealpipe.plugin import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    parse_retry_after,
)
from sealpipe_plugins.vault.adapter import get_member

_Meaning = tuple[type[PluginError], str, str]

_SEALED: Final = (UnavailableError, "Vault is sealed", "unseal it (vault operator unseal)")
_SERVER_ERROR: Final = (
    UnavailableError,
    "Vault or the system behind this path has an internal error",
    "see Vault's log",
)

_BY_STATUS: Final[Mapping[int, tuple[type[PluginError], str, str]]] = {
    400: (
        PluginError,
        "Vault rejects the request as invalid",
        "try `vault read` with the same path",
    ),
    405: (
        UnsupportedError,
        "Vault cannot read this path, only write it",
        "name a path that `vault read` can read",
    ),
    407: (
        NotConfiguredError,
        "the proxy to Vault requires a login",
        "write user and password into HTTP_PROXY",
    ),
    412: (UnavailableError, "Vault has not caught up with a write", ""),
    429: (UnavailableError, "Vault's limit of requests is reached", ""),
    472: (
        UnavailableError,
        "this Vault is a standby of another site",
        "set addr to the active one",
    ),
    473: (UnavailableError, "this Vault is a standby", "set addr to the active one"),
    500: _SERVER_ERROR,
    501: (NotConfiguredError, "Vault is not initialised", "initialise it (vault operator init)"),
    502: (UnavailableError, "the proxy in front of Vault got no valid response", ""),
    503: (
        UnavailableError,
        "Vault is not available",
        "see `vault status`: it may be sealed, or without a leader",
    ),
    504: (UnavailableError, "the proxy in front of Vault got no response from it", ""),
}
_TOO_LARGE: Final[_Meaning] = (
    UnsupportedError,
    "it is too large for this Vault",
    "store it elsewhere: file:, aws-sm:",
)
_BY_WRITE: Final[Mapping[int, _Meaning]] = {
    400: (
        PluginError,
        "Vault rejects the write as invalid",
        "try `vault kv put` with the same path",
    ),
    404: (
        SecretNotFoundError,
        "nothing at this path accepts a write",
        "check the path, its mount and the namespace",
    ),
    405: (
        UnsupportedError,
        "Vault cannot write this path, only read it",
        "name a path in a key-value engine",
    ),
}
_RENEW_LOGIN: Final = "check both, or create a new secret_id: it may have expired or be used up"
_LOGINS: Final = (
    ("expired", "the credential for the login has expired", "use a new one"),
    (
        "audience",
        "the token is not for the audience that the role requires",
        "set audience to one of the role's bound_audiences",
    ),
    ("could not be found", "the role does not exist", "check the setting role"),
    ("invalid role name", "the role does not exist", "check the setting role"),
    ("missing role", "no role is set, and the method has no default", "set the setting role"),
    ("claim", "the token's claims do not match the role's", "see the role's bound_claims"),
    ("signature", "the token is not signed by an issuer that the method trusts",
        "check the method's keys and issuer"),
    ("secret id", "role_id and secret_id do not match, or the secret_id is used up", _RENEW_LOGIN),
    ("secret_id", "role_id and secret_id do not match, or the secret_id is used up", _RENEW_LOGIN),
    ("username or password", "user name or password is wrong", "check both"),
    ("address", "the role does not allow this machine's address",
        "check the role's token_bound_cidrs"),
)  # fmt: skip
"""Words of Vault's response to a login, their meaning and the remedy; the first match counts."""


def read_error(error: VaultError, reference: str, namespace: str) -> PluginError:
    """Return the error for a read; `reference` is named in it.

    Not for 403, which needs a second call.
    """
    response = error.response
    if response.status == 404 and has_words(error, "namespace not found"):
        return SecretNotFoundError(
            f"{reference}: Vault has no namespace {namespace}",
            remedy="check namespace=, and the setting namespace",
        )
    kind, reason, remedy = _find_meaning(response.status, response.body, error)
    mapped = kind(f"{reference}: {reason} ({response.status})", remedy=remedy)
    if isinstance(mapped, UnavailableError):
        mapped.retry_after = parse_retry_after(response.headers.get("retry-after"))
    return mapped


def write_error(error: VaultError, reference: str, namespace: str) -> PluginError:
    """Return the error for a write: like `read_error`, except where writes differ."""
    status = error.response.status
    if status == 413 or has_words(error, "too large"):
        kind, reason, remedy = _TOO_LARGE
    elif has_words(error, "upgrading"):
        kind, reason, remedy = (
            UnavailableError,
            "Vault is still upgrading this engine to one with versions",
            "",
        )
    elif status in _BY_WRITE:
        kind, reason, remedy = _BY_WRITE[status]
    else:
        return read_error(error, reference, namespace)
    return kind(f"{reference}: {reason} ({status})", remedy=remedy)


def login_error(
    error: VaultError, store: str, method: str, path: str, namespace: str
) -> PluginError:
    """Return the error for a login by a method that is mounted at `path`."""
    status = error.response.status
    plain_http = status == 400 and b"HTTPS server" in error.response.body
    if status not in (400, 401, 403, 404) or plain_http or has_words(error, "namespace not found"):
        return read_error(error, f"the login of {store}", namespace)
    mount = f"auth/{path}" + (f" in the namespace {namespace}" if namespace else "")
    for word, reason, remedy in _LOGINS:
        if has_words(error, word):
            return BackendAuthError(
                f"Vault refused the login of {store} by {method}: {reason}", remedy=remedy
            )
    return BackendAuthError(
        f"Vault refused the login of {store} by {method}",
        remedy=(
            f"check that {method} is mounted at {mount} (the setting auth_path), the role and "
            "the credential"
        ),
    )


def has_words(error: VaultError, words: str) -> bool:
    """Return whether Vault's response contains these words."""
    return any(words in each.lower() for each in error.errors or ())


def not_found_error(
    error: VaultError, reference: str, version: str | None, path: str
) -> SecretNotFoundError:
    """Return the error for a read of a key-value engine that found nothing."""
    metadata = get_member(error.json, "data", "metadata")
    number = get_member(metadata, "version")
    if get_member(metadata, "destroyed") is True:
        return SecretNotFoundError(
            f"{reference}: version {number} is destroyed", remedy="name another version: ?version=N"
        )
    if get_member(metadata, "deletion_time"):
        return SecretNotFoundError(
            f"{reference}: version {number} is deleted",
            remedy="name another version (?version=N), or undelete it (vault kv undelete)",
        )
    if path.startswith("data/"):
        return SecretNotFoundError(
            f"{reference}: the key does not exist",
            remedy="leave data/ out: it is part of the API's path only",
        )
    if version is not None:
        return SecretNotFoundError(
            f"{reference}: the key does not exist, or not in this version",
            remedy="see `vault kv metadata get`",
        )
    return SecretNotFoundError(
        f"{reference}: the key does not exist",
        remedy="check the path; `vault kv list` lists the keys",
    )


def _find_meaning(
    status: int, body: bytes, error: VaultError
) -> tuple[type[PluginError], str, str]:
    if 300 <= status < 400:
        return (
            NotConfiguredError,
            "Vault responded with a redirect, which is never followed",
            "set addr to the active Vault",
        )
    if status == 400 and b"HTTPS server" in body:
        return NotConfiguredError, "Vault speaks TLS there", "use https:// in addr"
    if status == 404:
        return (
            SecretNotFoundError,
            "nothing exists at this path",
            "check the path, its mount and the namespace",
        )
    if status == 503 and (has_words(error, "sealed") or get_member(error.json, "sealed") is True):
        return _SEALED
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return _SERVER_ERROR if status >= 500 else _BY_STATUS[400]
