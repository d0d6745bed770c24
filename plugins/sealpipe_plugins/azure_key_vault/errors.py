"""What the refusals of Microsoft's login and of Key Vault mean, as tables.

No response is quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.cloud import CodedRefusals, require_allowed, usual_refusals
from sealpipe_plugins.http_errors import Refusal
from sealpipe_plugins.http_reply import Reply

_CHECK_LOGIN: Final = (
    "check tenant_id, client_id and client_secret (AZURE_*), and this machine's clock"
)
_EXPIRED: Final[Refusal] = (
    BackendAuthError,
    "the client secret of the application has expired",
    "create a new one (`az ad app credential reset`)",
)
_NO_APPLICATION: Final[Refusal] = (
    BackendAuthError,
    "the tenant has no such application",
    "check client_id (AZURE_CLIENT_ID), and that the application is in this tenant",
)
_NO_TENANT: Final[Refusal] = (
    NotConfiguredError,
    "the tenant does not exist",
    "check tenant_id (AZURE_TENANT_ID) and the authority",
)
_NO_TRUST: Final[Refusal] = (
    BackendAuthError,
    "the application does not trust the CI's token",
    "check its federated credential: the issuer, the subject and the audience",
)
_LOGIN: Final[Mapping[int, Refusal]] = {
    7000222: _EXPIRED,
    7000215: (
        BackendAuthError,
        "the client secret of the application is wrong",
        "check client_secret (AZURE_CLIENT_SECRET): its value, not its id",
    ),
    700016: _NO_APPLICATION,
    7000112: (BackendAuthError, "the application is disabled", "enable it in the tenant"),
    90002: _NO_TENANT,
    900021: _NO_TENANT,
    900023: _NO_TENANT,
    70021: _NO_TRUST,
    700211: _NO_TRUST,
    700212: _NO_TRUST,
    700213: _NO_TRUST,
    700024: (
        BackendAuthError,
        "the CI's token has expired",
        "log in earlier in the job; check the clock",
    ),
    50013: _NO_TRUST,
    53003: (
        AccessDeniedError,
        "a conditional access policy of the tenant forbids the login",
        "ask its administrator",
    ),
    500011: (
        NotConfiguredError,
        "the tenant has no Key Vault of this cloud",
        "check url and authority",
    ),
}
"""Microsoft's error codes (AADSTS...)."""


def login_error(refusal: Reply | None, codes: Any, store: str) -> PluginError:
    """Return the error for a login that failed.

    `codes` are Microsoft's, `refusal` is the last refused response.
    """
    found = (
        codes
        if isinstance(codes, list)
        else refusal.member("error_codes")
        if refusal is not None
        else None
    )
    numbers = [code for code in found if isinstance(code, int)] if isinstance(found, list) else []
    for number in numbers:
        if number in _LOGIN:
            kind, reason, remedy = _LOGIN[number]
            return kind(f"{store}: {reason} (AADSTS{number})", remedy=remedy)
    detail = (
        f" (AADSTS{numbers[0]})"
        if numbers
        else f" ({refusal.status})"
        if refusal is not None
        else ""
    )
    if refusal is not None and refusal.member("error") == "invalid_tenant":
        kind, reason, remedy = _NO_TENANT
        return kind(f"{store}: {reason}{detail}", remedy=remedy)
    return BackendAuthError(f"{store}: Microsoft refused the login{detail}", remedy=_CHECK_LOGIN)


_GRANT: Final = "a role or an access policy with it"
_REJECTED: Final = "check the name and the version; a value is text of 1 to 25,600 bytes"
_REFUSALS: Final[CodedRefusals] = {
    **usual_refusals("the vault", "vault", _CHECK_LOGIN, "secrets/{permission}", _GRANT),
    (403, "SecretDisabled"): (
        SecretNotFoundError,
        " is disabled, or its time is over",
        "enable it (`az keyvault secret set-attributes --enabled true`), or name another version",
    ),
    (403, "ForbiddenByFirewall"): (
        AccessDeniedError,
        " may not be {done}: the firewall of the vault does not admit this machine",
        "allow its address or network in the vault's networking, or use a private endpoint",
    ),
    (409, "ObjectIsDeletedButRecoverable"): (
        WriteConflictError,
        " is deleted and can be recovered: its name cannot be used",
        "recover it (`az keyvault secret recover`), purge it, or name another one",
    ),
    (409, ""): (
        WriteConflictError,
        " is being changed, deleted or recovered right now (409)",
        "run it again later",
    ),
    (400, "read"): (ReferenceValueError, ": the vault rejects the name (400)", _REJECTED),
    (400, ""): (UnsupportedError, ": the vault rejects the value (400)", _REJECTED),
}
"""By the inner code of an error; of a status 400, by what the call does."""


def refuse(reply: Reply, locator: Locator, permission: str, done: str = "read") -> Reply:
    """Return a 2xx reply; raise the error of any other.

    `permission` is what the call needs, `done` what it does.
    """
    code = done if reply.status == 400 else _inner_code(reply)
    return require_allowed(reply, code, _REFUSALS, locator, permission, done)


def _inner_code(reply: Reply) -> str:
    error = reply.member("error")
    inner = error.get("innererror") if isinstance(error, dict) else None
    return str(inner.get("code", "")) if isinstance(inner, dict) else ""
