"""What the refusals of Google's login and of Secret Manager mean, as tables.

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
)
from sealpipe_plugins.cloud import CodedRefusals, require_allowed, usual_refusals
from sealpipe_plugins.gcp.settings import GcpSettings
from sealpipe_plugins.http_errors import Refusal
from sealpipe_plugins.http_reply import Reply

_LOG_IN: Final = (
    "log in again (`gcloud auth application-default login`), or create a new key; check the "
    "clock as well"
)

_LOGIN: Final[tuple[tuple[str, str, Refusal], ...]] = (
    (
        "invalid_grant",
        "signature",
        (
            BackendAuthError,
            (
                "Google does not accept the key of the service account: it was deleted, or is "
                "another account's"
            ),
            "create a new key (`gcloud iam service-accounts keys create`)",
        ),
    ),
    (
        "invalid_grant",
        "account not found",
        (
            BackendAuthError,
            (
                "Google does not know the service account: it was deleted, or the file is "
                "another project's"
            ),
            "check client_email in the credentials file",
        ),
    ),
    ("invalid_grant", "", (BackendAuthError, "the login has expired or was revoked", _LOG_IN)),
    (
        "invalid_client",
        "",
        (BackendAuthError, "Google does not accept the client of the credentials", _LOG_IN),
    ),
    (
        "deleted_client",
        "",
        (BackendAuthError, "Google does not accept the client of the credentials", _LOG_IN),
    ),
)
"""An OAuth error code, words of its description in lower case, and what they mean.

The first match counts.
"""

_TRUST: Final = (
    "check the provider: its issuer, its allowed audience (the setting audience) and its "
    "attribute condition"
)
_FEDERATION: Final[Mapping[str, Refusal]] = {
    "invalid_target": (
        NotConfiguredError,
        "Google does not know the workload identity provider",
        (
            "check workload_identity_provider: "
            "projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/NAME"
        ),
    ),
    "unauthorized_client": (
        AccessDeniedError,
        "the attribute condition of the workload identity provider does not admit the CI's token",
        "check the provider's attribute condition against the token's claims",
    ),
}


def login_error(refusal: Reply | None, store: str, settings: GcpSettings) -> PluginError:
    """Return the error for a login that failed.

    `refusal` is the response to it, None without one.
    """
    if refusal is None:
        return BackendAuthError(
            f"the login of {store} to Google failed: its response or its credentials are not valid",
            remedy=_LOG_IN,
        )
    code, federated = refusal.member("error"), settings.workload_identity_provider is not None
    # An error of Google's own APIs: the service account could not be impersonated.
    if isinstance(code, dict):
        return AccessDeniedError(
            f"the login of {store} may not act as its service account ({refusal.status})",
            remedy="grant roles/iam.workloadIdentityUser (or serviceAccountTokenCreator) on the "
            "service account, and enable iamcredentials.googleapis.com",
        )
    description = str(refusal.member("error_description") or "").lower()
    found = next(
        (each for name, words, each in _LOGIN if name == code and words in description), None
    )
    if federated:
        found = _FEDERATION.get(str(code)) or (
            BackendAuthError,
            "Google does not accept the CI's token",
            _TRUST,
        )
    kind, reason, remedy = found or (
        BackendAuthError,
        f"Google refused the login ({refusal.status})",
        _LOG_IN,
    )
    return kind(f"{store}: {reason}", remedy=remedy)


_REFUSALS: Final[CodedRefusals] = {
    **usual_refusals("Google", "project", _LOG_IN, "{permission}", "a role with {permission}"),
    (403, "SERVICE_DISABLED"): (
        NotConfiguredError,
        " cannot be {done}: the Secret Manager API is not enabled in the project",
        "enable it: `gcloud services enable secretmanager.googleapis.com`",
    ),
    (403, "CONSUMER_INVALID"): (
        NotConfiguredError,
        " cannot be {done}: its project does not exist, or is not this login's",
        "check the project's id, and the login's account",
    ),
    (403, "BILLING_DISABLED"): (
        NotConfiguredError,
        " cannot be {done}: its project has no billing account",
        "enable billing",
    ),
    (403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT"): (
        AccessDeniedError,
        " cannot be {done}: the login lacks the scope cloud-platform",
        "give the machine's service account the scope cloud-platform, or use another login",
    ),
    (400, "FAILED_PRECONDITION"): (
        SecretNotFoundError,
        " has no value that can be {done}: the version is disabled or destroyed",
        "enable it (`gcloud secrets versions enable`), or name another one with ?version=",
    ),
    (400, ""): (
        ReferenceValueError,
        " is not valid for Google (400)",
        "check the project and the name",
    ),
}
"""By the reason in an error's ErrorInfo, or by its status."""


def refuse(reply: Reply, locator: Locator, permission: str, done: str = "read") -> Reply:
    """Return a 2xx reply; raise the error of any other.

    `permission` is what the call needs, `done` what it does.
    """
    code = _error_reason(reply) if reply.status == 403 else str(error_member(reply, "status"))
    return require_allowed(reply, code, _REFUSALS, locator, permission, done)


def error_member(reply: Reply, name: str) -> Any:
    """Return a member of the error object in a response, or None."""
    error = reply.member("error")
    return error.get(name) if isinstance(error, dict) else None


def _error_reason(reply: Reply) -> str:
    details = error_member(reply, "details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(detail.get("reason"), str):
            return str(detail["reason"])
    return ""
