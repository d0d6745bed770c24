"""sealpipe: hand secrets from pipelines to people, and back, end-to-end encrypted.

The public names are imported on first use: `import sealpipe` loads no network code.
"""

from __future__ import annotations

from importlib import import_module

from sealpipe.version import __version__ as __version__

# the same form as in typing: importing typing would be most of what `sealpipe --version` costs
TYPE_CHECKING = False
if TYPE_CHECKING:
    from sealpipe.async_client import AsyncClient as AsyncClient
    from sealpipe.async_client import aresolve as aresolve
    from sealpipe.client import Client as Client
    from sealpipe.client import resolve as resolve
    from sealpipe.collect.results import CollectResult as CollectResult
    from sealpipe.collect.results import Progress as Progress
    from sealpipe.errors import *  # noqa: F403
    from sealpipe.prompts import Prompt as Prompt
    from sealpipe.request.create import SecureRequest as SecureRequest
    from sealpipe.secret import Secret as Secret
    from sealpipe.share.post import Share as Share
    from sealpipe.state.outbox import Outbox as Outbox
    from sealpipe.state.receipt import Receipt as Receipt
    from sealpipe.wire.fields import Field as Field

_MODULES = {
    "AsyncClient": "sealpipe.async_client",
    "Client": "sealpipe.client",
    "CollectResult": "sealpipe.collect.results",
    "Field": "sealpipe.wire.fields",
    "Outbox": "sealpipe.state.outbox",
    "Progress": "sealpipe.collect.results",
    "Prompt": "sealpipe.prompts",
    "Receipt": "sealpipe.state.receipt",
    "Secret": "sealpipe.secret",
    "SecureRequest": "sealpipe.request.create",
    "Share": "sealpipe.share.post",
    "aresolve": "sealpipe.async_client",
    "resolve": "sealpipe.client",
}

_ERRORS = (
    "AuditError",
    "BackendAuthError",
    "ReferenceValueError",
    "BoxError",
    "CheckError",
    "CollectError",
    "WriteConflictError",
    "CredentialError",
    "AuthenticationError",
    "CustodyError",
    "AccessDeniedError",
    "EncodingError",
    "EnvelopeError",
    "FailedRowsError",
    "FieldError",
    "FragmentError",
    "IdempotencyConflictError",
    "InvalidRequestError",
    "ReferenceSyntaxError",
    "KeyAllowanceError",
    "PublicKeyMismatchError",
    "NotFoundError",
    "ApiAccessError",
    "SubmissionNotFoundError",
    "NoSubmissionError",
    "UnopenedError",
    "ViewProtectionError",
    "NotConfiguredError",
    "DeliveryError",
    "SecretNotFoundError",
    "UnreadableSubmissionError",
    "OutcomeUnknownError",
    "PasscodeError",
    "PermissionDeniedError",
    "PluginError",
    "PolicyError",
    "PointError",
    "ProtocolError",
    "QuotaExceededError",
    "RateLimitError",
    "MissingScopeError",
    "SealpipeError",
    "SeedError",
    "ServiceError",
    "SettingError",
    "StateError",
    "PendingError",
    "PayloadTooLargeError",
    "TooManySubmissionsError",
    "ToolError",
    "RetriesExhaustedError",
    "UnavailableError",
    "UnknownOutcomeError",
    "ConnectError",
    "UnsupportedError",
    "UsageError",
    "WebhookError",
    "WireError",
    "WrongKeyError",
)

__all__ = ["__version__", *_MODULES, *_ERRORS]


if not TYPE_CHECKING:  # hidden from type checkers, which would take every misspelled name for Any

    def __getattr__(name):
        if name in _ERRORS:
            return getattr(import_module("sealpipe.errors"), name)
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        raise AttributeError(f"module 'sealpipe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
